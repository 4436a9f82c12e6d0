package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What stands around an output decides what becomes of a hook that is refused for good.
func TestFallbacks(t *testing.T) {
	const ours = "ankusa_sqs: { queue_url: 'https://sqs.eu-west-1.amazonaws.com/1/hooks' }"
	const sw = "switch: { cases: [ { output: { reject: x } } ] }"
	for _, s := range []struct{ name, output, resources, want string }{
		{"none", ours, "", "warning fallback: no fallback around it"},
		{"none, in a broker", "broker: { outputs: [ { drop: {} }, { " + ours + " } ] }", "", "warning fallback: no fallback around it"},
		{"a switch", "fallback: [ { " + ours + " }, { " + sw + " } ]", "", "ok fallback: the switch at output.fallback.1"},
		{"a switch, with a broker between", "fallback: [ { broker: { outputs: [ { " + ours + " } ] } }, { " + sw + " } ]", "", "ok fallback: the switch at output.fallback.1"},
		{"a file", "fallback: [ { " + ours + " }, { file: { path: x } } ]", "", "warning fallback: the next tier, file at output.fallback.1, is no switch"},
		{"a bare reject", "fallback: [ { " + ours + " }, { reject: x } ]", "", "warning fallback: bare reject"},
		{"a drop", "fallback: [ { " + ours + " }, { drop: {} } ]", "", "warning fallback: bare drop"},
		{"a retry between", "fallback: [ { retry: { output: { " + ours + " } } }, { " + sw + " } ]", "", "warning fallback: remove the retry"},
		{"a retry outside", "retry: { output: { fallback: [ { " + ours + " }, { " + sw + " } ] } }", "", "ok fallback: the switch"},
		{"a retry alone", "retry: { output: { " + ours + " } }", "", "warning fallback: a retry stands around it and no fallback"},
		{"drop_on errors", "drop_on: { error: true, output: { " + ours + " } }", "", "warning fallback: drop_on at output loses"},
		{"drop_on back pressure only", "drop_on: { error: false, back_pressure: 1s, output: { " + ours + " } }", "", "warning fallback: no fallback around it"},
		{"the dead letters' queue", "fallback: [ { drop: {} }, { switch: { cases: [ { output: { " + ours + " } } ] } } ]", "", "ok fallback: a last tier"},
		{"a fallback in a fallback", "fallback: [ { fallback: [ { drop: {} }, { " + ours + " } ] }, { " + sw + " } ]", "", "ok fallback: the switch at output.fallback.1"},
		{"a resource", "fallback: [ { resource: hooks }, { " + sw + " } ]", "{ label: hooks, " + ours + " }", "ok fallback: the switch at output.fallback.1"},
		{"a resource's part", "resource: hooks", "{ label: hooks, fallback: [ { " + ours + " }, { " + sw + " } ] }", "ok fallback: the switch at output_resources.0.fallback.1"},
		{"a resource without", "resource: hooks", "{ label: hooks, " + ours + " }", "warning fallback: no fallback around it"},
		{"resources in a circle", "drop: {}", "{ label: hooks, broker: { outputs: [ { " + ours + " }, { resource: hooks } ] } }", ""},
		{"a resource that nobody uses", "drop: {}", "{ label: hooks, " + ours + " }", `skipped fallback: "hooks" is used nowhere`},
		{"a second tier that is a resource", "fallback: [ { " + ours + " }, { resource: rest } ]", "{ label: rest, " + sw + " }", "ok fallback: the switch at output_resources.0"},
		{"a second tier that is missing", "fallback: [ { " + ours + " }, { resource: rest } ]", "", `failure fallback: the resource "rest"`},
	} {
		t.Run(s.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pipeline.yaml")
			text := "output: { " + s.output + " }\noutput_resources: [ " + s.resources + " ]\n"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			p, err := readPipeline(file, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(p.ours) != 1 {
				t.Fatalf("found %d outputs, want 1", len(p.ours))
			}
			var got []string
			for _, f := range p.fallbacks(p.ours[0]) {
				got = append(got, fmt.Sprintf("%s %s: %s → %s", f.status, f.subject, f.text, f.mend))
			}
			head, part, _ := strings.Cut(s.want, ": ")
			switch {
			case s.want == "" && len(got) == 0:
			case len(got) != 1 || !strings.HasPrefix(got[0], head) || !strings.Contains(got[0], part):
				t.Errorf("got %q, want one line %q", got, s.want)
			}
		})
	}
}

func TestOneResourceUsedTwice(t *testing.T) {
	c := newClinic(t)
	c.sqs.CreateQueue("hooks", nil)
	d := c.examine(`output:
  broker:
    outputs:
      - resource: hooks
      - resource: hooks
      - fallback: [ { resource: hooks }, { drop: {} } ]
output_resources:
  - label: hooks
` + indent(strings.TrimSpace(c.sqsOutput("hooks")), "    ") + "\n")
	d.wants("warning fallback: no fallback around it", "warning fallback: bare drop")
	if n := strings.Count(d.text, "no fallback around it"); n != 1 {
		t.Errorf("told %d times, want once:\n%s", n, d.text)
	}
}

// Threads reorder only where they have something to do, and only what has an order matters.
func TestThreads(t *testing.T) {
	c := newClinic(t)
	c.sqs.CreateQueue("hooks", nil)
	c.sqs.CreateQueue("hooks.fifo", map[string]string{"FifoQueue": "true"})
	fifo := around(c.sqsOutput("hooks.fifo"))
	const one = "  threads: 1\n"
	c.examine(fifo).wants("ok threads: is 1", "ok in flight: is 1")
	c.examine(strings.Replace(fifo, one, "", 1)).wants("warning threads: one per core")
	c.examine(strings.Replace(fifo, one, "  threads: 3\n", 1)).wants("warning threads: is 3")
	c.examine(strings.Replace(fifo, one, "  threads: ${THREADS:2}\n", 1)).wants("warning threads: is 2")
	c.examine(strings.Replace(fifo, one+"  processors:\n    - mapping: root = this\n", "  processors: []\n", 1)).wants("ok threads: no processors")
	c.examine(strings.Replace(around(c.sqsOutput("hooks")), one, "", 1)).hasNone("warning", "ok threads")
}
