package doctor

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localsqs"
)

// nobody is an address where nothing listens: port 9 is reserved for discard.
const nobody = "http://127.0.0.1:9"

func TestHealthySQSOutputs(t *testing.T) {
	c := newClinic(t)
	c.sqs.CreateQueue("hooks", nil)
	c.sqs.CreateQueue("hooks.fifo", map[string]string{"FifoQueue": "true"})
	for queue, kind := range map[string]string{"hooks": "standard", "hooks.fifo": "FIFO"} {
		d := c.examine(around(c.sqsOutput(queue)))
		d.wants("ok region: us-east-1, from region", "ok endpoint: http://SQS, from queue_url, answers", "ok clock: agrees",
			"ok credentials: AKIA…0000, from credentials.id", "ok queue: /"+queue+" is there", "ok kind: "+kind,
			"ok size: 1,048,576 bytes", "ok fallback: the switch at output.fallback.1", "ok store: can be written")
		d.hasNone("warning", "failure", "skipped")
	}
}

func TestSQSSituations(t *testing.T) {
	wrongSecret := "credentials: { id: " + localsqs.DefaultAccessKeyID + ", secret: this-is-the-wrong-one }"
	for _, s := range []struct {
		name  string
		queue string
		more  []string
		setup func(*clinic)
		want  []string
	}{
		{name: "wrong region", queue: "hooks", more: []string{"region: eu-west-1"},
			want: []string{"ok region: eu-west-1", "failure queue: the service is not in the region eu-west-1"}},
		{name: "wrong secret", queue: "hooks", more: []string{wrongSecret},
			want: []string{"ok credentials: AKIA…0000", "failure queue: the secret: it does not belong to the key id"}},
		{name: "unknown key id", queue: "hooks", more: []string{"credentials: { id: AKIANOBODYKNOWSTHIS1, secret: a-secret-of-nobody }"},
			want: []string{"failure queue: the key id AKIA…HIS1 is refused"}},
		{name: "missing queue", queue: "nothing-here",
			want: []string{"failure queue: create it", "ok credentials: AKIA…0000"}},
		{name: "standard queue under a FIFO queue's name", queue: "hooks.fifo",
			setup: func(c *clinic) { c.sqs.CreateQueue("hooks.fifo", map[string]string{"FifoQueue": "false"}) },
			want:  []string{"failure kind: the queue is standard, and by its URL the output takes it for FIFO"}},
		{name: "FIFO queue under a standard queue's name", queue: "plain",
			setup: func(c *clinic) { c.sqs.CreateQueue("plain", map[string]string{"FifoQueue": "true"}) },
			want:  []string{"failure kind: the queue is FIFO, and by its URL the output takes it for standard"}},
		{name: "queue with a lower limit", queue: "small",
			setup: func(c *clinic) {
				c.sqs.CreateQueue("small", map[string]string{"MaximumMessageSize": "262144"})
			},
			want: []string{"warning size: set max_message_bytes: 262144"}},
		{name: "queue whose limit an inline body passes", queue: "small", more: []string{"max_message_bytes: 65536"},
			setup: func(c *clinic) { c.sqs.CreateQueue("small", map[string]string{"MaximumMessageSize": "65536"}) },
			want:  []string{"ok size: 65,536 bytes", "warning inline: 87,384 bytes in base64"}},
		{name: "a limit that base64 alone reaches", queue: "hooks", more: []string{"inline_max_bytes: 49152", "max_message_bytes: 65536"},
			want: []string{"warning inline: 65,536 bytes in base64, and max_message_bytes takes"}},
		{name: "encrypted queue", queue: "sealed",
			setup: func(c *clinic) {
				c.sqs.CreateQueue("sealed", map[string]string{"KmsMasterKeyId": "alias/hooks"})
			},
			want: []string{"skipped encryption: kms:GenerateDataKey and kms:Decrypt"}},
		{name: "no right to look", queue: "hooks", setup: refuse("AccessDeniedException"),
			want: []string{"warning queue: grant sqs:GetQueueAttributes"}},
		{name: "throttled", queue: "hooks", setup: refuse("ThrottlingException"),
			want: []string{"skipped queue: it asks to slow down"}},
		{name: "code of an older dialect", queue: "hooks", setup: func(c *clinic) {
			c.sqs.Faults.Add(localcloud.Fault{Action: "GetQueueAttributes", Effect: localcloud.Effect{Error: &localcloud.ErrorReply{Code: "QueueDoesNotExist", Dialect: localcloud.HeaderOnly}}})
		}, want: []string{"failure queue: there is no queue"}},
		{name: "expired session token", queue: "hooks", setup: refuse("ExpiredTokenException"),
			want: []string{"failure queue: the credentials are over"}},
		{name: "a proxy instead of SQS", queue: "hooks", setup: func(c *clinic) {
			c.sqs.Faults.Add(localcloud.Fault{Action: "GetQueueAttributes", Effect: localcloud.Effect{Reply: localcloud.HTML(502)}})
		}, want: []string{"failure queue: no SQS document: <html>"}},
		{name: "connection lost", queue: "hooks", setup: func(c *clinic) {
			c.sqs.Faults.Add(localcloud.Fault{Action: "GetQueueAttributes", Effect: localcloud.Effect{Cut: true}})
		}, want: []string{"failure queue: could not be looked at"}},
		{name: "a service that stays mute", queue: "hooks", more: []string{"timeout: 50ms"}, setup: func(c *clinic) {
			c.sqs.Faults.Add(localcloud.Fault{Action: "GetQueueAttributes", Effect: localcloud.Effect{Stall: true}})
		}, want: []string{"ok endpoint: answers", "failure queue: no complete reply within 50ms"}},
		{name: "unreachable host", queue: "hooks", more: []string{"endpoint: " + nobody},
			want: []string{"failure endpoint: " + nobody + ", from endpoint, can't be reached", "ok credentials: AKIA…0000", "skipped queue: because of the above", "ok store: can be written"}},
		{name: "no credentials", queue: "hooks", more: []string{"credentials: "},
			want: []string{"ok endpoint: answers", "failure credentials: no_credentials: no credentials found", "skipped queue: because of the above", "ok store: can be written"}},
		{name: "no region", queue: "hooks", more: []string{"region: "},
			want: []string{"failure region: set region", "skipped queue: because of the above"}},
		{name: "dynamic queue", queue: "hooks", more: []string{`queue_url: '${! "http://x/y/" + @queue }.fifo'`, "endpoint: ENDPOINT"},
			want: []string{"skipped queue: made from each message", "ok endpoint: http://SQS, from endpoint, answers", "ok clock: agrees", "ok credentials: AKIA…0000", "ok threads: is 1", "ok store: can be written"}},
		{name: "dynamic queue without an endpoint", queue: "hooks", more: []string{"queue_url: ${! @queue }", "region: "},
			want: []string{"skipped queue: only https URLs of AWS", "skipped region: each queue URL's host", "ok credentials: AKIA…0000"}},
		{name: "no store", queue: "hooks", more: []string{"claim_check: "},
			want: []string{"warning store: a body over inline_max_bytes 65,536"}},
		{name: "store that is not there", queue: "hooks", more: []string{"claim_check: { store: dir:///nowhere/at/all }"},
			want: []string{"failure store: dir:///nowhere/at/all can't be written"}},
		{name: "cache that is not there", queue: "hooks", more: []string{"claim_check: { store: cache:claims }"},
			want: []string{"failure store: no cache resource labelled"}},
		{name: "several writes at once on FIFO", queue: "hooks.fifo", more: []string{"max_in_flight: 4"},
			want: []string{"warning in flight: set max_in_flight: 1"}},
		{name: "a value that the parser refuses", queue: "hooks", more: []string{"batch: { linger: 5m }"},
			want: []string{"failure lint: must be 1ms to 1m0s, got 5m (run refuses to start on it)", "failure config: batch.linger", "ok fallback: switch"}},
	} {
		t.Run(s.name, func(t *testing.T) {
			c := newClinic(t)
			c.sqs.CreateQueue("hooks", nil)
			c.sqs.CreateQueue("hooks.fifo", map[string]string{"FifoQueue": "true"})
			if s.setup != nil {
				s.setup(c)
			}
			c.examine(around(strings.ReplaceAll(c.sqsOutput(s.queue, s.more...), "ENDPOINT", c.sqsURL))).wants(s.want...)
		})
	}
}

// Who has made the messages has stored what is too big for one.
func TestEncodedMessagesNeedNoStore(t *testing.T) {
	c := newClinic(t)
	c.sqs.CreateQueue("hooks", nil)
	d := c.examine(around(c.sqsOutput("hooks", "claim_check: ", "hook: { format: ankusa }", "inline_max_bytes: 65536", "max_message_bytes: 65536")))
	d.wants("ok queue: is there")
	d.hasNone("warning", "ok store")
}

// refuse has the queue's attributes refused with a code.
func refuse(code string) func(*clinic) {
	return func(c *clinic) {
		c.sqs.Faults.Add(localcloud.Fault{Action: "GetQueueAttributes", Effect: localcloud.Effect{Error: &localcloud.ErrorReply{Code: code}}})
	}
}

// A clock that is wrong is told as such, and the rest is checked by the service's clock: a refused
// signature would hide whether the queue is there.
func TestSkewedClock(t *testing.T) {
	for _, s := range []struct {
		skew time.Duration
		want string
	}{
		{30 * time.Second, "ok clock: 30s behind the service's"},
		{-2 * time.Minute, "warning clock: 2m0s ahead of the service's"},
		{20 * time.Minute, "failure clock: 20m0s behind the service's"},
		{-20 * time.Minute, "failure clock: 20m0s ahead of the service's"},
	} {
		t.Run(s.skew.String(), func(t *testing.T) {
			c := newClinic(t)
			// Between two seconds of the header, so that it rounds one way.
			c.now = func() time.Time { return time.Now().Truncate(time.Second).Add(200 * time.Millisecond) }
			c.sqs.CreateQueue("hooks", nil)
			c.sqs.Faults.Add(localcloud.Fault{Effect: localcloud.Effect{Skew: s.skew}})
			c.examine(around(c.sqsOutput("hooks"))).wants(s.want, "ok queue: is there")
		})
	}
}

func TestNoDateHeader(t *testing.T) {
	c := newClinic(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header()["Date"] = nil }))
	defer server.Close()
	c.examine(around(c.sqsOutput("hooks", "endpoint: "+server.URL))).wants("skipped clock: no Date header", "failure queue: no SQS document")
}

func TestSourcesFromTheEnvironment(t *testing.T) {
	c := newClinic(t)
	c.sqs.CreateQueue("hooks", nil)
	t.Setenv("AWS_ACCESS_KEY_ID", localsqs.DefaultAccessKeyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", localsqs.DefaultSecretAccessKey)
	t.Setenv("AWS_DEFAULT_REGION", localsqs.DefaultRegion)
	t.Setenv("AWS_ENDPOINT_URL", c.sqsURL)
	t.Setenv("QUEUE", "https://example.test/000000000000/hooks")
	out := c.sqsOutput("hooks", "credentials: ", "region: ", "queue_url: ${QUEUE}", "max_in_flight: ${WRITES:7}")
	d := c.examine(around(out))
	d.wants("ok region: us-east-1, from AWS_DEFAULT_REGION", "ok endpoint: from AWS_ENDPOINT_URL, answers",
		"ok credentials: AKIA…0000, from the environment (AWS_ACCESS_KEY_ID)", "ok queue: example.test")

	t.Setenv("AWS_REGION", localsqs.DefaultRegion)
	c.examine(around(out)).wants("ok region: us-east-1, from AWS_REGION")

	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	file := filepath.Join(t.TempDir(), "credentials")
	text := "[default]\naws_access_key_id = " + localsqs.DefaultAccessKeyID + "\naws_secret_access_key = " + localsqs.DefaultSecretAccessKey + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	c.examine(around(out)).wants("ok credentials: AKIA…0000, from " + file)
}

// The region of the URL wins for AWS, so another one beside it is a signature that will be refused.
func TestRegionAgainstQueueURL(t *testing.T) {
	c := newClinic(t)
	out := c.sqsOutput("hooks", "queue_url: https://sqs.eu-west-1.amazonaws.com/123456789012/hooks", "region: ${REGION:us-east-1}")
	c.examine(around(out)).wants("failure region: us-east-1, but queue_url is in eu-west-1", "failure endpoint: https://sqs.eu-west-1.amazonaws.com")
	c.examine(around(out + "  endpoint: " + c.sqsURL)).has("ok region: us-east-1, from region")
	t.Setenv("REGION", "eu-west-1")
	c.examine(around(out)).has("ok region: eu-west-1, from region")
	c.examine(around(strings.ReplaceAll(out, "  region: ${REGION:us-east-1}\n", ""))).has("ok region: eu-west-1, from queue_url")
}

// Temporary credentials come with a token, which has to be sent and signed, and with an end.
func TestTemporaryCredentials(t *testing.T) {
	c := newClinic(t)
	c.sqs.CreateQueue("hooks", nil)
	const id, secret, token = "ASIATEMPORARY0000001", "secret-of-a-container", "token-of-a-container"
	c.sqs.SetCredentials(localsqs.Credential{AccessKeyID: id, SecretAccessKey: secret, SessionToken: token})
	end := time.Now().Add(time.Hour + 10*time.Second)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"AccessKeyId":%q,"SecretAccessKey":%q,"Token":%q,"Expiration":%q}`, id, secret, token, end.UTC().Format(time.RFC3339))
	}))
	defer server.Close()
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.URL)
	out := around(c.sqsOutput("hooks", "credentials: "))
	c.examine(out).wants("ok credentials: ASIA…0001, from the container's credential service, renewed within 55m0s", "ok queue: is there")

	end = time.Now().Add(-5 * time.Minute)
	c.examine(out).wants("warning credentials: at or past their end", "ok queue: is there")
}

func TestProfile(t *testing.T) {
	c := newClinic(t)
	c.sqs.CreateQueue("hooks", nil)
	file := filepath.Join(t.TempDir(), "credentials")
	text := "[hooks]\naws_access_key_id = " + localsqs.DefaultAccessKeyID + "\naws_secret_access_key = " + localsqs.DefaultSecretAccessKey + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	c.examine(around(c.sqsOutput("hooks", "credentials: { profile: hooks }"))).wants("ok credentials: from "+file+", profile hooks", "ok queue: is there")
	c.examine(around(c.sqsOutput("hooks", "credentials: { profile: others }"))).wants("failure credentials: profile", "skipped queue: because of the above")
}
