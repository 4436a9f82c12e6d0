package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localsqs"
)

// crowded has outputs in every place where one can be.
const crowded = `http:
  enabled: false
input:
  file:
    paths: [ ./hooks.jsonl ]
pipeline:
  processors:
    - mapping: root = this
output:
  broker:
    pattern: fan_out
    outputs:
      - label: invoices
        fallback:
          - ankusa_sqs:
              queue_url: SQS/000000000000/invoices.fifo
              region: us-east-1
              max_in_flight: 2
              credentials:
                id: AKIALOCALCLOUD000000
                secret: ${SECRET}
              claim_check:
                store: cache:claims
          - switch:
              cases:
                - check: '@fallback_error.re_match("^(permanent|config):")'
                  output:
                    label: dead_letters
                    ankusa_sqs:
                      queue_url: SQS/000000000000/dead
                      region: eu-west-1
                      credentials:
                        id: AKIALOCALCLOUD000000
                        secret: ${SECRET}
                      hook:
                        format: ankusa
                - output:
                    reject: ${! @fallback_error }
      - resource: warehouse
output_resources:
  - label: warehouse
    ankusa_pubsub:
      project: local
      topic: hooks
      endpoint: PUBSUB
cache_resources:
  - label: claims
    memory: {}
`

// The report as a whole is what people read, so its whole text is kept.
func TestGoldenReport(t *testing.T) {
	c := newClinic(t)
	t.Setenv("SECRET", localsqs.DefaultSecretAccessKey)
	c.sqs.CreateQueue("invoices.fifo", map[string]string{"FifoQueue": "true", "MaximumMessageSize": "262144"})
	c.sqs.CreateQueue("dead", nil)
	c.topic("hooks")
	d := c.examine(strings.NewReplacer("SQS/", c.sqsURL+"/", "PUBSUB", c.pubsubURL).Replace(crowded))
	if d.healthy {
		t.Error("healthy, want not: the topic has no subscription and a region is wrong")
	}
	file := filepath.Join("testdata", "report.golden")
	if *update {
		if err := os.WriteFile(file, []byte(d.text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d.text != string(want) {
		t.Errorf("got\n%s\nwant\n%s", d.text, want)
	}
}

// Neither what is configured nor what was looked up may show, whoever quotes it.
func TestSecretsNeverShow(t *testing.T) {
	c := newClinic(t)
	c.topic("hooks", "warehouse")
	g := newGoogle(t, c)
	c.pubsub.SetTokens("another-token")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-environment")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAFROMTHEENVIRONMT")
	t.Setenv("AWS_SESSION_TOKEN", "token-of-the-environment")
	quote := func(secrets []string) {
		text := "you sent " + strings.Join(secrets, ", ")
		c.sqs.Faults.Clear()
		c.sqs.Faults.Add(localcloud.Fault{Action: "GetQueueAttributes", Effect: localcloud.Effect{Error: &localcloud.ErrorReply{Code: "InternalFailure", Message: text}}})
		c.pubsub.Faults.Clear()
		c.pubsub.Faults.Add(localcloud.Fault{Action: "GetTopic", Effect: localcloud.Effect{Error: &localcloud.ErrorReply{Code: "INTERNAL", Message: text}}})
	}
	environment := []string{"secret-of-the-environment", "token-of-the-environment"}
	configured := []string{"a-configured-secret", "a-configured-token"}
	for _, s := range []struct {
		output  string
		secrets []string
	}{
		{c.sqsOutput("hooks", "credentials: { id: AKIAFROMTHEFILEITSELF, secret: a-configured-secret, token: a-configured-token }"), configured},
		{c.sqsOutput("hooks", "credentials: ", "endpoint: ${E:http://someone:hunter2hunter2@127.0.0.1:9}"), environment},
		{c.sqsOutput("hooks", "credentials: ", "queue_url: 'http://someone:hunter2hunter2@127.0.0.1:9/1/hooks'"), environment},
		{c.sqsOutput("hooks", "credentials: "), environment},
		{c.sqsOutput("hooks", "credentials: { id: AKIAFROMTHEFILEITSELF, secret: a-configured-secret }", "batch: { linger: a-configured-secret }"), configured[:1]},
		{g.output(c, "hooks", "credentials_json: '"+g.key+"'"), append([]string{googleToken}, environment...)},
		// The service's text is cut off in the middle of the last one.
		{g.output(c, "hooks", "credentials_json: '"+g.key+"'"), append(environment, strings.Repeat("x", 30), googleToken)},
		{c.pubsubOutput("hooks", "credentials_json: '{\"type\":\"service_account\",\"private_key\":\"a-configured-secret\"}'", "endpoint: https://127.0.0.1:9"), configured[:1]},
	} {
		quote(s.secrets)
		d := c.examine(around(s.output))
		for _, secret := range append(s.secrets, "hunter2", "PRIVATE KEY", "AKIAFROMTHEFILEITSELF", "AKIAFROMTHEENVIRONMT", "ya29.a-t") {
			if strings.Contains(d.text, secret) && strings.Trim(secret, "x") != "" {
				t.Errorf("%q shows in\n%s", secret, d.text)
			}
		}
	}
}

// A report is read while it is made: a mute service must not hold back what is known already.
func TestLinesAppearAsTheyBecomeKnown(t *testing.T) {
	c := newClinic(t)
	c.sqs.CreateQueue("hooks", nil)
	file := filepath.Join(t.TempDir(), "pipeline.yaml")
	if err := os.WriteFile(file, []byte(around(c.sqsOutput("hooks"))), 0o600); err != nil {
		t.Fatal(err)
	}
	var seen []string // what was written when the queue was asked
	out := &lines{}
	c.sqs.Faults.Add(localcloud.Fault{Action: "GetQueueAttributes", If: func(*localcloud.Call) bool {
		seen = out.all()
		return false
	}})
	if _, err := run(t.Context(), options{file: file, timeout: DefaultTimeout, getenv: os.Getenv, now: c.now}, out); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(seen, ""); !strings.Contains(text, "credentials  AKIA…0000") || strings.Contains(text, "queue  ") {
		t.Errorf("when the queue was asked, this was written:\n%s", text)
	}
}

func TestOneLineFolds(t *testing.T) {
	if got := oneLine(" a\nb\t\tc "); got != "a b c" {
		t.Errorf("got %q", got)
	}
}

func TestShortKeyID(t *testing.T) {
	for id, want := range map[string]string{"AKIALOCALCLOUD000000": "AKIA…0000", "short": "…", "": "…"} {
		if got := shortKeyID(id); got != want {
			t.Errorf("%q is shown as %q, want %q", id, got, want)
		}
	}
}
