package output_test

import (
	"strings"
	"testing"
)

// A value that would refuse every message is refused once, at start, and by name.
func TestStaticValuesThatNoMessageMayHaveAreRefusedAtStart(t *testing.T) {
	p := newPipeline(t, newScript())
	for _, c := range []struct{ fields, want string }{
		{"hook: { source_id: 'git hub' }", "source_id"},
		{"hook: { tenant_id: 'acme corp' }", "tenant_id"},
		{"hook: { received_at: yesterday }", "received_at"},
		{"hook: { claim: 'urn:nope' }", "hook.claim"},
		{"message_group_id: 'my group'", "message_group_id"},
		{`attributes: { env: "a\u0000b" }`, "env"},
	} {
		t.Run(c.fields, func(t *testing.T) {
			b := p.env.NewStreamBuilder()
			b.DisableLinting()
			must(t, b.AddInputYAML("script: {}"))
			must(t, b.AddOutputYAML(p.sqsYAML("hooks", c.fields)))
			must(t, b.SetLoggerYAML("level: none"))
			stream, err := b.Build()
			if err == nil {
				err = stream.Run(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one that names %s", err, c.want)
			}
		})
	}
}
