package localpubsub

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

func TestRoute(t *testing.T) {
	for _, c := range []struct{ method, path, action, name string }{
		{"POST", "/v1/projects/p/topics/hooks:publish", ActionPublish, "projects/p/topics/hooks"},
		{"POST", "/v1/projects/p/topics/hooks%3Apublish", ActionPublish, "projects/p/topics/hooks"},
		{"POST", "/v1/projects/example.com:p/topics/hooks:publish", ActionPublish, "projects/example.com:p/topics/hooks"},
		{"POST", "/v1/projects/example.com%3Ap/topics/a%2Bb%25c:publish", ActionPublish, "projects/example.com:p/topics/a+b%c"},
		{"POST", "/v1/projects/p/topics/a%2Fb:publish", ActionPublish, "projects/p/topics/a/b"}, // one segment: refused by name
		{"PUT", "/v1/projects/p/topics/hooks", ActionCreateTopic, "projects/p/topics/hooks"},
		{"GET", "/v1/projects/p/topics/hooks", ActionGetTopic, "projects/p/topics/hooks"},
		{"DELETE", "/v1/projects/p/topics/hooks", ActionDeleteTopic, "projects/p/topics/hooks"},
		{"GET", "/v1/projects/p/topics", ActionListTopics, "projects/p/topics/"},
		{"GET", "/v1/projects/p/topics/hooks/subscriptions", ActionListTopicSubscriptions, "projects/p/topics/hooks"},
		{"POST", "/v1/projects/p/topics/hooks:testIamPermissions", ActionTestIamPermissions, "projects/p/topics/hooks"},
		{"PUT", "/v1/projects/p/subscriptions/sub", ActionCreateSubscription, "projects/p/subscriptions/sub"},
		{"GET", "/v1/projects/p/subscriptions/sub", ActionGetSubscription, "projects/p/subscriptions/sub"},
		{"DELETE", "/v1/projects/p/subscriptions/sub", ActionDeleteSubscription, "projects/p/subscriptions/sub"},
		{"GET", "/v1/projects/p/subscriptions", ActionListSubscriptions, "projects/p/subscriptions/"},
		{"POST", "/v1/projects/p/subscriptions/sub:pull", ActionPull, "projects/p/subscriptions/sub"},
		{"POST", "/v1/projects/p/subscriptions/sub:acknowledge", ActionAcknowledge, "projects/p/subscriptions/sub"},
		{"POST", "/v1/projects/p/subscriptions/sub:modifyAckDeadline", ActionModifyAckDeadline, "projects/p/subscriptions/sub"},

		{"GET", "/v1/projects/p/subscriptions/sub/subscriptions", "", ""},
		{"POST", "/v1/projects/p/topics/hooks", "", ""},
		{"POST", "/v1/projects/p/topics/a/b:publish", "", ""},
		{"POST", "/v1/projects/p/subscriptions/sub:publish", "", ""},
		{"POST", "/v1/projects/projects/p/topics/hooks:publish", "", ""},
		{"POST", "/v1/projects/p/topics/hooks%zz:publish", "", ""},
		{"POST", "/v1/projects/p/queues/hooks:publish", "", ""},
		{"POST", "/v1beta2/projects/p/topics/hooks:publish", "", ""},
		{"PATCH", "/v1/projects/p/topics/hooks", "", ""},
		{"POST", "//v1/projects/p/topics/hooks:publish", "", ""},
		{"GET", "/", "", ""},
	} {
		action, n := route(c.method, c.path)
		if action != c.action || action != "" && n.String() != c.name {
			t.Errorf("%s %s = %q %q, want %q %q", c.method, c.path, action, n, c.action, c.name)
		}
		if action != "" && actions[action] == nil {
			t.Errorf("nobody does %s", action)
		}
	}
}

// Google's front end has no document for a path that it does not know.
func TestUnknownPathIsAPage(t *testing.T) {
	a := serve(t, New(Options{})).call(t, "POST", "/topics/hooks:frobnicate", "{}")
	if a.status != 404 || a.code != "" || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
		t.Errorf("got %v %v, want an HTML 404", a, a.header)
	}
}

func TestErrorIsGooglesDocument(t *testing.T) {
	c := serve(t, New(Options{}))
	a := c.publish(t, "nowhere", publishBody(texts("", "x")...))
	want := "{\n  \"error\": {\n    \"code\": 404,\n    \"message\": \"Resource not found (resource=nowhere).\",\n    \"status\": \"NOT_FOUND\"\n  }\n}\n"
	if a.status != 404 || string(a.body) != want || a.header.Get("Content-Type") != "application/json; charset=UTF-8" {
		t.Errorf("got %v %v, want %s", a, a.header, want)
	}
	a = c.publish(t, "nowhere", `{"messages":[{"bogus":1}]}`)
	for _, part := range []string{`"@type": "type.googleapis.com/google.rpc.BadRequest"`, `"field": "messages[0]"`} {
		if !strings.Contains(string(a.body), part) {
			t.Errorf("got %s, want %s in it", a.body, part)
		}
	}
}

func TestTokensAreChecked(t *testing.T) {
	p := newTopic(t, Options{Tokens: []string{"one", "two"}}, TopicOptions{})
	c := serve(t, p)
	for _, x := range []struct {
		token string
		want  int
	}{{"", 401}, {"three", 401}, {"one", 200}, {"two", 200}} {
		c.token = x.token
		a := c.publish(t, "hooks", publishBody(texts("", "x")...))
		if a.status != x.want || x.want == 401 && a.code != "UNAUTHENTICATED" {
			t.Errorf("token %q: %v, want %d", x.token, a, x.want)
		}
	}
	p.SetTokens("three")
	c.token = "one"
	if a := c.call(t, "GET", "/topics/hooks", ""); a.status != 401 {
		t.Errorf("a token that was dropped: %v, want 401", a)
	}
	p.SetTokens()
	c.token = ""
	c.must(t, "GET", "/topics/hooks", "")
	if got := p.Stats("hooks").Refused["UNAUTHENTICATED"]; got != 2 {
		t.Errorf("%d publish requests refused, want 2", got)
	}
	if got := p.Refused()["UNAUTHENTICATED"]; got != 1 {
		t.Errorf("%d other requests refused, want 1", got)
	}
}

func TestAutoCreateKeepsNamesInOrder(t *testing.T) {
	p := New(Options{AutoCreate: true})
	c := serve(t, p)
	if a := c.publish(t, "ab", publishBody(texts("", "x")...)); a.status != 400 || a.code != "INVALID_ARGUMENT" {
		t.Errorf("a name that is none: %v, want 400", a)
	}
	c.project = "zoo"
	c.must(t, "POST", "/topics/made:publish", publishBody(texts("", "x")...))
	c.expectTopics(t, p, "[projects/zoo/topics/made]")
	for _, name := range []string{"made", "projects/zoo/topics/made"} {
		if got := data(p, name); fmt.Sprint(got) != "[x]" {
			t.Errorf("Published(%q) = %q, want x", name, got)
		}
	}
	if p.Published("projects/other/topics/made") != nil || p.Published("ab") != nil {
		t.Error("something was published where nothing is")
	}
	if !p.DeleteTopic("made") || p.DeleteTopic("made") {
		t.Error("DeleteTopic: want true, then false")
	}
	c.expectTopics(t, p, "[]")
}

func (c *caller) expectTopics(t *testing.T, p *PubSub, want string) {
	t.Helper()
	if got := fmt.Sprint(p.Topics()); got != want {
		t.Errorf("topics %s, want %s", got, want)
	}
}

func TestCreateTopicRefusesLikeTheAction(t *testing.T) {
	p := newTopic(t, Options{}, TopicOptions{})
	if err := p.CreateTopic("hooks", TopicOptions{}); err == nil || !strings.Contains(err.Error(), "ALREADY_EXISTS") {
		t.Errorf("got %v, want ALREADY_EXISTS", err)
	}
	if err := p.CreateTopic("ab", TopicOptions{}); err == nil || !strings.Contains(err.Error(), "INVALID_ARGUMENT") {
		t.Errorf("got %v, want INVALID_ARGUMENT", err)
	}
	if err := p.CreateSubscription("sub", "none", SubscriptionOptions{}); err == nil || !strings.Contains(err.Error(), "NOT_FOUND") {
		t.Errorf("got %v, want NOT_FOUND", err)
	}
}

// What the service would act on and this package can't is said, not ignored.
func TestUnsupportedFeaturesAreRefused(t *testing.T) {
	c := serve(t, newTopic(t, Options{}, TopicOptions{}))
	for path, body := range map[string]string{
		"/topics/other":        `{"schemaSettings":{"schema":"projects/p/schemas/s"}}`,
		"/subscriptions/other": `{"topic":"projects/local/topics/hooks","pushConfig":{"pushEndpoint":"https://example.com"}}`,
	} {
		if a := c.call(t, "PUT", path, body); a.status != 501 || a.code != "UNIMPLEMENTED" {
			t.Errorf("%s: %v, want 501 UNIMPLEMENTED", path, a)
		}
	}
	c.must(t, "PUT", "/subscriptions/other", `{"topic":"projects/local/topics/hooks","pushConfig":{},"labels":{"a":"b"},"ack_deadline_seconds":20}`)
	if a := c.must(t, "GET", "/subscriptions/other", ""); !strings.Contains(string(a.body), `"ackDeadlineSeconds": 20`) {
		t.Errorf("got %v, want a deadline of 20 s", a)
	}
}

func TestTestIamPermissions(t *testing.T) {
	p := newTopic(t, Options{Permit: func(topic, permission string) bool {
		return topic == "projects/local/topics/hooks" && permission != "pubsub.topics.delete"
	}}, TopicOptions{})
	c := serve(t, p)
	ask := `{"permissions":["pubsub.topics.publish","pubsub.topics.delete"]}`
	if a := c.must(t, "POST", "/topics/hooks:testIamPermissions", ask); !strings.Contains(string(a.body), "publish") || strings.Contains(string(a.body), "delete") {
		t.Errorf("got %v, want publish alone", a)
	}
	// The reference: an empty set for what does not exist, not NOT_FOUND.
	if a := c.must(t, "POST", "/topics/nowhere:testIamPermissions", ask); strings.Contains(string(a.body), "publish") {
		t.Errorf("got %v, want no permission", a)
	}
}

func TestObserveSeesWhatIsPublished(t *testing.T) {
	var seen []string
	p := newTopic(t, Options{Observe: func(c *localcloud.Call) {
		for _, e := range c.Entries {
			seen = append(seen, fmt.Sprintf("%s %s %d: %d %s %v %s", c.Action, c.Resource, c.Ordinal, e.Index, e.Body, e.Attributes, e.Group))
		}
	}}, TopicOptions{})
	c := serve(t, p)
	c.publish(t, "hooks", publishBody(testMessage{Data: []byte("a"), Attributes: map[string]string{"n": "v"}, OrderingKey: "k"}))
	if got := fmt.Sprint(seen); got != "[Publish hooks 1: 0 a map[n:v] k]" {
		t.Errorf("saw %s", got)
	}
	if p.Requests(ActionPublish) != 1 || p.Requests("") != 1 || p.Requests(ActionPull) != 0 {
		t.Errorf("%d publish requests of %d in all", p.Requests(ActionPublish), p.Requests(""))
	}
}

func TestHTTPStatusOfEveryCode(t *testing.T) {
	for code, status := range httpStatus {
		r := writeError(&localcloud.ErrorReply{Code: code})
		if r.Status != status || http.StatusText(status) == "" && status != 499 {
			t.Errorf("%s = %d, want %d", code, r.Status, status)
		}
	}
}
