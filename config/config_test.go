package config

import (
	"strings"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// lintOutput lints `name: {…}` as an output the way the command line does.
func lintOutput(t *testing.T, name string, spec *service.ConfigSpec, yaml string) []string {
	t.Helper()
	env := service.NewEnvironment()
	err := env.RegisterBatchOutput(name, spec, func(*service.ParsedConfig, *service.Resources) (service.BatchOutput, service.BatchPolicy, int, error) {
		return nil, service.BatchPolicy{}, 1, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	lints, err := env.NewComponentConfigLinter().LintOutputYAML([]byte(name + ":\n  " + strings.ReplaceAll(strings.TrimSpace(yaml), "\n", "\n  ")))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, l := range lints {
		if strings.HasPrefix(l.What, "required environment variables were not set") {
			continue // the linter's own remark; the command line reads the environment first
		}
		if l.Line == 0 {
			t.Errorf("lint without a line number: %s", l.What)
		}
		out = append(out, l.What)
	}
	return out
}

const goodQueue = "queue_url: https://sqs.us-east-1.amazonaws.com/123456789012/hooks\n"

func TestLintSQS(t *testing.T) {
	for _, c := range []struct {
		name, yaml string
		want       string // a part of the one lint wanted; "" for none
	}{
		{"a good minimal config", goodQueue, ""},
		{"a good FIFO config", "queue_url: https://sqs.us-east-1.amazonaws.com/123456789012/hooks.fifo\nmessage_group_id: ${! @source }\nbatch:\n  linger: 50ms\n  strict_order: true", ""},
		{"a dynamic URL is not judged", "queue_url: ${! @queue }", ""},
		{"an environment variable is not judged", "queue_url: ${QUEUE_URL}\nregion: ${REGION}\nbatch:\n  linger: ${LINGER}", ""},
		{"a URL that is none", "queue_url: hooks", "is no queue URL"},
		{"a URL without a queue", "queue_url: https://sqs.us-east-1.amazonaws.com/", "is no queue URL"},
		{"a bad region", goodQueue + "region: us_east_1", "is no AWS region"},
		{"an availability zone", goodQueue + "region: us-east-1a", "is no AWS region"},
		{"another region than the queue's", goodQueue + "region: eu-west-1", "is not the queue URL's region us-east-1"},
		{"another region with an endpoint of its own", goodQueue + "region: eu-west-1\nendpoint: http://127.0.0.1:4566", ""},
		{"host and port without a scheme", goodQueue + "endpoint: localhost:4566", ""},
		{"an endpoint with a space", goodQueue + "endpoint: http://local host", "is no endpoint"},
		{"delay on FIFO", "queue_url: https://sqs.us-east-1.amazonaws.com/123456789012/hooks.fifo\ndelay_seconds: 5", "can't be used with a FIFO queue"},
		{"delay on FIFO behind a slash", "queue_url: https://sqs.us-east-1.amazonaws.com/123456789012/hooks.fifo/\ndelay_seconds: '0'", "can't be used with a FIFO queue"},
		{"delay 900", goodQueue + "delay_seconds: 900", ""},
		{"delay 901", goodQueue + "delay_seconds: 901", "0 to 900"},
		{"too many entries", goodQueue + "batch:\n  max_entries: 11", "1 to 10, got 11"},
		{"no entries", goodQueue + "batch:\n  max_entries: 0", "1 to 10, got 0"},
		{"too many bytes", goodQueue + "batch:\n  max_bytes: 1048577", "1 to 1,048,576"},
		{"too large a message", goodQueue + "max_message_bytes: 1048577", "1 to 1,048,576"},
		{"linger too short", goodQueue + "batch:\n  linger: 1us", "must be 1ms to 1m0s"},
		{"linger too long", goodQueue + "batch:\n  linger: 61s", "must be 1ms to 1m0s"},
		{"linger that is no duration", goodQueue + "batch:\n  linger: soon", "no duration"},
		{"no source", goodQueue + "hook:\n  source_id: ''", "source_id is required"},
		{"a source that is none", goodQueue + "hook:\n  source_id: git hub", "must be 1 to 64"},
		{"a tenant that is none", goodQueue + "hook:\n  tenant_id: acme corp", "must be 1 to 64"},
		{"a group that is none", goodQueue + "message_group_id: my group", "must be 1 to 128"},
		{"an unknown format", goodQueue + "hook:\n  format: avro", "avro"},
		{"hook fields beside format ankusa", goodQueue + "hook:\n  format: ankusa\n  id: x", "remove id"},
		{"format ankusa alone", goodQueue + "hook:\n  format: ankusa", ""},
		{"an unknown store", goodQueue + "claim_check:\n  store: ftp://x", "must be s3://bucket"},
		{"a directory store", goodQueue + "claim_check:\n  store: dir:///var/lib/hooks", ""},
		{"an s3 store with options", goodQueue + "claim_check:\n  store: s3://acme-hooks?region=eu-west-1&path_style=true", ""},
		{"three extra attributes", goodQueue + "attributes: {a: '1', b: '2', c: '3'}", "at most 2 on SQS, got 3"},
		{"an attribute of our own", goodQueue + "attributes: {ankusa_id: x}", "can't begin with ankusa_"},
		{"an attribute name SQS refuses", goodQueue + "attributes: {'a b': x}", "SQS allows names"},
		{"id without secret", goodQueue + "credentials: {id: x}", "secret is not"},
		{"a role that is no ARN", goodQueue + "credentials: {role: hooks}", "is no role ARN"},
		{"inline above message", goodQueue + "inline_max_bytes: 2000\nmax_message_bytes: 1000", "above max_message_bytes"},
		{"a retry interval above its cap", goodQueue + "backoff:\n  initial_interval: 20s\n  max_interval: 10s", "is above max_interval"},
		{"an unknown field", goodQueue + "quue: x", "not recognised"},
		{"no writes in flight", goodQueue + "max_in_flight: 0", "1 to 100,000"},
	} {
		t.Run(c.name, func(t *testing.T) { checkLints(t, lintOutput(t, "ankusa_sqs", SQSSpec(), c.yaml), c.want) })
	}
}

func TestLintPubSub(t *testing.T) {
	for _, c := range []struct{ name, yaml, want string }{
		{"a good minimal config", "topic: hooks", ""},
		{"a dynamic topic", "topic: hooks-${! @source }", ""},
		{"a full topic name", "topic: projects/p/topics/hooks", "short name"},
		{"a project with a space", "topic: hooks\nproject: my project", "is no project id"},
		{"too many entries", "topic: hooks\nbatch:\n  max_entries: 1001", "1 to 1,000"},
		{"too many bytes", "topic: hooks\nbatch:\n  max_bytes: 10000001", "1 to 10,000,000"},
		{"a name that Google keeps", "topic: hooks\nattributes: {goog_x: y}", "don't begin with goog"},
		{"credentials over plain http", "topic: hooks\nendpoint: http://example.test\ncredentials_json: '{}'", "never sent over plain http"},
		{"three extra attributes", "topic: hooks\nattributes: {a: '1', b: '2', c: '3'}", ""},
	} {
		t.Run(c.name, func(t *testing.T) { checkLints(t, lintOutput(t, "ankusa_pubsub", PubSubSpec(), c.yaml), c.want) })
	}
}

func checkLints(t *testing.T, lints []string, want string) {
	t.Helper()
	switch {
	case want == "" && len(lints) > 0:
		t.Errorf("got lints %q, want none", lints)
	case want != "" && (len(lints) != 1 || !strings.Contains(lints[0], want)):
		t.Errorf("got lints %q, want one that holds %q", lints, want)
	}
}

func parseSQS(t *testing.T, yaml string) (*SQS, error) {
	t.Helper()
	conf, err := SQSSpec().ParseYAML(yaml, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ParseSQS(conf)
}

func TestDefaultsDependOnOrder(t *testing.T) {
	standard, err := parseSQS(t, goodQueue)
	if err != nil {
		t.Fatal(err)
	}
	fifo, err := parseSQS(t, "queue_url: https://sqs.us-east-1.amazonaws.com/123456789012/hooks.fifo/")
	if err != nil {
		t.Fatal(err)
	}
	if standard.Ordered || standard.MaxInFlight != 128 || standard.Retry.MaxElapsedTime != 30*time.Second || !standard.Batching.IsNoop() {
		t.Errorf("standard: ordered %v, max_in_flight %d, max_elapsed_time %v, batching %+v", standard.Ordered, standard.MaxInFlight, standard.Retry.MaxElapsedTime, standard.Batching)
	}
	if !fifo.Ordered || fifo.MaxInFlight != 1 || fifo.Retry.MaxElapsedTime != 0 || fifo.Batching.Count != 640 || fifo.Batching.Period != "20ms" {
		t.Errorf("FIFO: ordered %v, max_in_flight %d, max_elapsed_time %v, batching %+v", fifo.Ordered, fifo.MaxInFlight, fifo.Retry.MaxElapsedTime, fifo.Batching)
	}
}

func TestCountOneTurnsBatchingOff(t *testing.T) {
	c, err := parseSQS(t, "queue_url: https://sqs.us-east-1.amazonaws.com/123456789012/hooks.fifo\nbatching:\n  count: 1")
	if err != nil {
		t.Fatal(err)
	}
	if !c.Batching.IsNoop() {
		t.Errorf("batching = %+v, want none", c.Batching)
	}
}

// What lint lets pass because it is a `${…}` there is refused at start, by name.
func TestParseRefusesWhatLintCannotSee(t *testing.T) {
	for _, c := range []struct{ name, yaml, want string }{
		{"empty queue_url", "queue_url: ''", "queue_url is required"},
		{"linger", goodQueue + "batch:\n  linger: 2m", "batch.linger: must be 1ms to 1m0s, got 2m0s"},
		{"max_entries", goodQueue + "batch:\n  max_entries: 50", "batch.max_entries: must be 1 to 10, got 50"},
		{"source_id", goodQueue + "hook:\n  source_id: ''", "hook.source_id: is required"},
		{"delay on FIFO", "queue_url: ${! @a }.fifo\ndelay_seconds: 3", "delay_seconds can't be used with a FIFO queue"},
		{"attributes", goodQueue + "attributes: {a: x, b: x, c: x}", "at most 2 on SQS, got 3"},
		{"own attribute", goodQueue + "attributes: {Content_Type: x}", "can't be replaced"},
		{"backoff", goodQueue + "backoff:\n  initial_interval: 20s", "above backoff.max_interval"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := parseSQS(t, c.yaml); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("err = %v, want one that holds %q", err, c.want)
			}
		})
	}
}

func TestEmptyGroupIsNoGroup(t *testing.T) {
	c, err := parseSQS(t, "queue_url: https://sqs.us-east-1.amazonaws.com/123456789012/hooks.fifo\nmessage_group_id: ''")
	if err != nil || c.MessageGroupID != nil {
		t.Errorf("group %v, %v; want none", c.MessageGroupID, err)
	}
}

func TestForwardHeadersTellsUnsetFromEmpty(t *testing.T) {
	unset, err := parseSQS(t, goodQueue)
	if err != nil {
		t.Fatal(err)
	}
	empty, err := parseSQS(t, goodQueue+"hook:\n  forward_headers: []")
	if err != nil {
		t.Fatal(err)
	}
	if unset.Hook.ForwardHeaders != nil || empty.Hook.ForwardHeaders == nil || len(empty.Hook.ForwardHeaders) != 0 {
		t.Errorf("unset %#v, empty %#v", unset.Hook.ForwardHeaders, empty.Hook.ForwardHeaders)
	}
}
