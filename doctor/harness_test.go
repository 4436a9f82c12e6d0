package doctor

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localpubsub"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localsqs"

	_ "github.com/redpanda-data/benthos/v4/public/components/io"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clinic has a local cloud of each kind and an environment without any credential.
type clinic struct {
	t         *testing.T
	sqs       *localsqs.SQS
	pubsub    *localpubsub.PubSub
	sqsURL    string
	pubsubURL string
	now       func() time.Time

	mu      sync.Mutex
	actions []string // what was asked of either cloud
}

func newClinic(t *testing.T) *clinic {
	t.Helper()
	clean(t)
	c := &clinic{t: t, now: time.Now}
	c.sqs = localsqs.New(localsqs.Options{Observe: c.observe})
	c.pubsub = localpubsub.New(localpubsub.Options{Observe: c.observe})
	c.sqsURL, c.pubsubURL = serve(t, c.sqs), serve(t, c.pubsub)
	// Whatever a test is about: nothing is ever sent.
	t.Cleanup(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, action := range c.actions {
			if strings.Contains(action, "Send") || strings.Contains(action, "Publish") {
				t.Errorf("the doctor called %s", action)
			}
		}
	})
	return c
}

func (c *clinic) observe(call *localcloud.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.actions = append(c.actions, call.Action)
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	l, err := localcloud.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := localcloud.Serve(l, h)
	t.Cleanup(func() { _ = s.Close() })
	return s.URL()
}

// clean takes everything out of the environment that either cloud's tools would find.
func clean(t *testing.T) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "GOOGLE_") || strings.HasPrefix(name, "PUBSUB_") {
			t.Setenv(name, "")
			_ = os.Unsetenv(name) // Setenv has noted what to put back
		}
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("NO_GCE_CHECK", "true")
}

// around is a whole configuration around an output, with the fallback that every example has.
func around(output string) string {
	return `input:
  file:
    paths: [ ./hooks.jsonl ]
pipeline:
  threads: 1
  processors:
    - mapping: root = this
output:
  fallback:
` + indent("- "+strings.ReplaceAll(strings.TrimSpace(output), "\n", "\n  "), "    ") + `
    - switch:
        cases:
          - check: '@fallback_error.re_match("^(permanent|config):")'
            output:
              file:
                path: ./dead-letters.jsonl
                codec: lines
          - output:
              reject: ${! @fallback_error }
`
}

func indent(s, by string) string { return by + strings.ReplaceAll(s, "\n", "\n"+by) }

// fields joins fields of an output, later ones in place of earlier ones of the same name.
func fields(name string, all ...string) string {
	var order []string
	value := map[string]string{}
	for _, f := range all {
		field, v, _ := strings.Cut(f, ": ")
		if !slices.Contains(order, field) {
			order = append(order, field)
		}
		value[field] = v
	}
	var out strings.Builder
	out.WriteString(name + ":\n")
	for _, field := range order {
		if value[field] != "" {
			out.WriteString("  " + field + ": " + value[field] + "\n")
		}
	}
	return out.String()
}

// sqsOutput is an output towards the local SQS. A field with nothing behind its colon is left out.
func (c *clinic) sqsOutput(queue string, more ...string) string {
	return fields("ankusa_sqs", append([]string{
		"queue_url: " + localsqs.QueueURL(c.sqsURL, queue),
		"region: " + localsqs.DefaultRegion,
		fmt.Sprintf("credentials: { id: %s, secret: %s }", localsqs.DefaultAccessKeyID, localsqs.DefaultSecretAccessKey),
		"claim_check: { store: dir://" + c.t.TempDir() + " }",
	}, more...)...)
}

// pubsubOutput is an output towards the local Pub/Sub.
func (c *clinic) pubsubOutput(topic string, more ...string) string {
	return fields("ankusa_pubsub", append([]string{
		"project: " + localpubsub.DefaultProject,
		"topic: " + topic,
		"endpoint: " + c.pubsubURL,
		"claim_check: { store: dir://" + c.t.TempDir() + " }",
	}, more...)...)
}

// diagnosis is a finished report.
type diagnosis struct {
	t       *testing.T
	text    string
	healthy bool
}

// examine runs the doctor on a configuration.
func (c *clinic) examine(yaml string) *diagnosis {
	c.t.Helper()
	d, err := c.try(yaml)
	if err != nil {
		c.t.Fatal(err)
	}
	return d
}

func (c *clinic) try(yaml string, resources ...string) (*diagnosis, error) {
	c.t.Helper()
	file := filepath.Join(c.t.TempDir(), "pipeline.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		c.t.Fatal(err)
	}
	var out strings.Builder
	healthy, err := run(c.t.Context(), options{file: file, resources: resources, timeout: 5 * time.Second, getenv: os.Getenv, now: c.now, dial: dialLoopback}, &out)
	text := strings.NewReplacer(file, "pipeline.yaml", c.sqsURL, "http://SQS", c.pubsubURL, "http://PUBSUB").Replace(out.String())
	return &diagnosis{t: c.t, text: text, healthy: healthy}, err
}

// dialLoopback keeps tests about real endpoints from asking them.
func dialLoopback(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, errors.New("tests stay on this machine")
	}
	return (&net.Dialer{}).DialContext(ctx, network, addr)
}

// has checks that the report has a line for each of want, "status subject: part of the text".
func (d *diagnosis) has(want ...string) {
	d.t.Helper()
	for _, w := range want {
		head, part, _ := strings.Cut(w, ": ")
		s, subject, _ := strings.Cut(head, " ")
		if !slices.ContainsFunc(strings.Split(d.text, "\n"), func(line string) bool {
			return strings.HasPrefix(line, fmt.Sprintf("  %-7s  %-12s ", s, subject)) && strings.Contains(line, part)
		}) {
			d.t.Errorf("no line %q in\n%s", w, d.text)
		}
	}
}

// hasNone checks that no line begins with any of the heads, "status" or "status subject".
func (d *diagnosis) hasNone(heads ...string) {
	d.t.Helper()
	for _, head := range heads {
		s, subject, _ := strings.Cut(head, " ")
		if strings.Contains(d.text, fmt.Sprintf("\n  %-7s  %s", s, subject)) {
			d.t.Errorf("a line %q in\n%s", head, d.text)
		}
	}
}

// wants checks lines and verdict: unhealthy if one of the lines is a failure.
func (d *diagnosis) wants(want ...string) {
	d.t.Helper()
	d.has(want...)
	healthy := !slices.ContainsFunc(want, func(w string) bool { return strings.HasPrefix(w, "failure ") })
	if d.healthy != healthy {
		d.t.Errorf("healthy = %v, want %v:\n%s", d.healthy, healthy, d.text)
	}
}
