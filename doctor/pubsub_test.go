package doctor

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localpubsub"
)

// topic makes a topic with subscriptions of the given names; one that ends in "-ordered" is.
func (c *clinic) topic(name string, subscriptions ...string) {
	c.t.Helper()
	if err := c.pubsub.CreateTopic(name, localpubsub.TopicOptions{}); err != nil {
		c.t.Fatal(err)
	}
	for _, s := range subscriptions {
		o := localpubsub.SubscriptionOptions{EnableMessageOrdering: strings.HasSuffix(s, "-ordered")}
		if err := c.pubsub.CreateSubscription(s, name, o); err != nil {
			c.t.Fatal(err)
		}
	}
}

func TestHealthyPubSubOutput(t *testing.T) {
	c := newClinic(t)
	c.topic("hooks", "warehouse-ordered")
	for _, key := range []string{"", "${! @source }"} {
		d := c.examine(around(c.pubsubOutput("hooks", "ordering_key: "+key)))
		d.wants("ok endpoint: http://PUBSUB, from endpoint, answers", "ok clock: agrees", "ok credentials: none is looked for",
			"ok project: local, from project", "ok topic: projects/local/topics/hooks is there", "ok publish: is granted",
			"ok readers: 1 subscription: warehouse-ordered", "ok fallback: switch", "ok store: can be written")
		d.hasNone("warning", "failure", "skipped")
		if key != "" {
			d.has("ok ordering: keep the order", "ok threads: is 1", "ok in flight: is 1")
		}
	}
}

// answer has requests of an action answered with a status.
func answer(action, status string) func(*clinic) {
	return func(c *clinic) {
		c.pubsub.Faults.Add(localcloud.Fault{Action: action, Effect: localcloud.Effect{Error: &localcloud.ErrorReply{Code: status}}})
	}
}

func TestPubSubSituations(t *testing.T) {
	all := func(faults ...func(*clinic)) func(*clinic) {
		return func(c *clinic) {
			for _, f := range faults {
				f(c)
			}
		}
	}
	for _, s := range []struct {
		name  string
		topic string
		more  []string
		setup func(*clinic)
		want  []string
	}{
		{name: "missing topic", topic: "nothing-here",
			want: []string{"failure topic: there is no projects/local/topics/nothing-here"}},
		{name: "a full name as topic", topic: "${T:projects/p/topics/t}",
			want: []string{"failure topic: full resource name"}},
		{name: "topic without subscriptions", topic: "lonely",
			want: []string{"failure readers: accepted and discarded"}},
		{name: "many subscriptions", topic: "popular",
			want: []string{"ok readers: 4 subscriptions: a-reader, b-reader, c-reader, …"}},
		{name: "key on a subscription without ordering", topic: "hooks", more: []string{"ordering_key: k"},
			want: []string{"warning ordering: 1 subscription: warehouse"}},
		{name: "no right to look", topic: "hooks", setup: all(answer("GetTopic", "PERMISSION_DENIED"), answer("ListTopicSubscriptions", "PERMISSION_DENIED")),
			want: []string{"ok publish: is granted", "skipped topic: it is there", "skipped topic: grant pubsub.topics.get", "skipped readers: grant pubsub.topics.get"}},
		{name: "no right to look at subscriptions", topic: "hooks", more: []string{"ordering_key: k"}, setup: answer("GetSubscription", "PERMISSION_DENIED"),
			want: []string{"ok readers: warehouse", "skipped ordering: grant pubsub.subscriptions.get"}},
		{name: "neither a right nor, perhaps, a topic", topic: "nothing-here", setup: answer("GetTopic", "PERMISSION_DENIED"),
			want: []string{"failure publish: or there is no such topic"}},
		{name: "an emulator without permissions", topic: "hooks", setup: answer("TestIamPermissions", "UNIMPLEMENTED"),
			want: []string{"ok topic: is there", "skipped publish: emulators", "ok readers: warehouse"}},
		{name: "a service in trouble", topic: "hooks", setup: answer("GetTopic", "UNAVAILABLE"),
			want: []string{"failure topic: could not be looked at: UNAVAILABLE"}},
		{name: "a proxy instead of Pub/Sub", topic: "hooks", setup: func(c *clinic) {
			c.pubsub.Faults.Add(localcloud.Fault{Action: "GetTopic", Effect: localcloud.Effect{Reply: localcloud.HTML(502)}})
		}, want: []string{"failure topic: no document of the API: <html>"}},
		{name: "a topic that keeps messages", topic: "hooks", setup: func(c *clinic) {
			c.pubsub.Faults.Add(
				localcloud.Fault{Action: "GetTopic", Effect: localcloud.Effect{Reply: &localcloud.Reply{Body: []byte(`{"messageRetentionDuration":"86400s"}`)}}},
				localcloud.Fault{Action: "ListTopicSubscriptions", Effect: localcloud.Effect{Reply: &localcloud.Reply{Body: []byte(`{}`)}}})
		}, want: []string{"warning readers: kept for 86400s"}},
		{name: "unreachable host", topic: "hooks", more: []string{"endpoint: " + nobody},
			want: []string{"failure endpoint: can't be reached", "skipped topic: because of the above", "ok store: can be written"}},
		{name: "no project", topic: "hooks", more: []string{"project: "},
			want: []string{"failure project: set project", "skipped topic: because of the above"}},
		{name: "dynamic topic", topic: "hooks-${! @source }",
			want: []string{"skipped topic: made from each message", "ok endpoint: answers", "ok project: local"}},
		{name: "bodies that base64 makes too large for REST", topic: "hooks", more: []string{"inline_max_bytes: 6000000"},
			want: []string{"warning inline: encoded twice"}},
		{name: "bodies larger than a message", topic: "hooks", more: []string{"inline_max_bytes: 9000000"},
			want: []string{"warning inline: 12,000,000 bytes in base64"}},
	} {
		t.Run(s.name, func(t *testing.T) {
			c := newClinic(t)
			c.topic("hooks", "warehouse")
			c.topic("lonely")
			c.topic("popular", "a-reader", "b-reader", "c-reader", "d-reader")
			if s.setup != nil {
				s.setup(c)
			}
			c.examine(around(c.pubsubOutput(s.topic, s.more...))).wants(s.want...)
		})
	}
}

func TestPubSubSourcesFromTheEnvironment(t *testing.T) {
	c := newClinic(t)
	c.topic("hooks", "warehouse")
	t.Setenv("PUBSUB_EMULATOR_HOST", strings.TrimPrefix(c.pubsubURL, "http://"))
	t.Setenv("GOOGLE_CLOUD_PROJECT", localpubsub.DefaultProject)
	c.examine(around(c.pubsubOutput("hooks", "project: ", "endpoint: "))).wants(
		"ok endpoint: http://PUBSUB, from PUBSUB_EMULATOR_HOST (an emulator), answers", "ok project: local, from GOOGLE_CLOUD_PROJECT", "ok topic: is there")
}

func TestNoGoogleCredentials(t *testing.T) {
	c := newClinic(t)
	c.examine(around(c.pubsubOutput("hooks", "endpoint: https://127.0.0.1:9", "ordering_key: k", "claim_check: { store: gs://acme-claims }"))).wants(
		"failure endpoint: can't be reached", "failure credentials: none found", "skipped topic: because of the above",
		"skipped store: no credentials", "ok project: local, from project")
}

// The global endpoint takes messages to whichever region is near.
func TestOrderingKeyThroughTheGlobalEndpoint(t *testing.T) {
	c := newClinic(t)
	c.examine(around(c.pubsubOutput("hooks", "endpoint: ", "ordering_key: k"))).wants(
		"failure endpoint: https://pubsub.googleapis.com, from nobody", "failure credentials: none found", "warning region: one regional endpoint")
}

// google is Pub/Sub over TLS behind a token issuer, and a key file for it.
type google struct {
	url, key, ca string
	tokens       int
}

const googleToken = "ya29.a-token-that-nobody-may-see"

func newGoogle(t *testing.T, c *clinic) *google {
	t.Helper()
	g := &google{}
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.tokens++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":%q,"expires_in":3600,"token_type":"Bearer"}`, googleToken)
	}))
	t.Cleanup(issuer.Close)
	server := httptest.NewTLSServer(c.pubsub)
	t.Cleanup(server.Close)
	g.url = server.URL
	g.ca = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": localpubsub.DefaultProject, "private_key_id": "1",
		"private_key":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"client_email": "hooks@local.iam.gserviceaccount.com", "token_uri": issuer.URL,
	})
	if err != nil {
		t.Fatal(err)
	}
	g.key = string(key)
	return g
}

// output is one towards g.
func (g *google) output(c *clinic, topic string, more ...string) string {
	ca, _ := json.Marshal(g.ca)
	return c.pubsubOutput(topic, append([]string{"endpoint: " + g.url, fmt.Sprintf("tls: { root_cas: %s }", ca)}, more...)...)
}

func TestGoogleCredentials(t *testing.T) {
	c := newClinic(t)
	c.pubsub.SetTokens(googleToken)
	c.topic("hooks", "warehouse")
	g := newGoogle(t, c)
	file := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(file, []byte(g.key), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []string{"ok endpoint: " + g.url, "ok topic: is there", "ok publish: is granted", "ok readers: warehouse"}

	d := c.examine(around(g.output(c, "hooks", "project: ", "credentials_json: '"+g.key+"'")))
	d.wants(append(want, "ok credentials: the credential from credentials_json", "ok project: local, from the credential")...)

	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	c.examine(around(g.output(c, "hooks"))).wants(append(want, "ok credentials: "+file)...)

	c.pubsub.SetTokens("another")
	c.examine(around(g.output(c, "hooks"))).wants("ok credentials: a token was issued", "failure topic: the token is refused")
	if g.tokens != 3 {
		t.Errorf("%d tokens were issued, want one per report: 3", g.tokens)
	}
}

func TestNoRightToPublish(t *testing.T) {
	c := newClinic(t)
	c.pubsub = localpubsub.New(localpubsub.Options{
		Observe: c.observe, Permit: func(_, permission string) bool { return permission != rightPublish },
	})
	c.pubsubURL = serve(t, c.pubsub)
	c.topic("hooks", "warehouse")
	c.examine(around(c.pubsubOutput("hooks"))).wants("ok topic: is there", "failure publish: grant roles/pubsub.publisher", "ok readers: warehouse")
}

func TestSkewedPubSubClock(t *testing.T) {
	c := newClinic(t)
	c.topic("hooks", "warehouse")
	c.now = func() time.Time { return time.Now().Add(time.Hour) }
	c.examine(around(c.pubsubOutput("hooks"))).wants("failure clock: ahead of the service's", "ok topic: is there")
}
