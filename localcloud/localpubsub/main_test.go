package localpubsub

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// caller speaks HTTP to a Pub/Sub, whichever it is.
type caller struct {
	base    string // without a trailing slash
	project string
	token   string
	client  *http.Client
}

// answer is a reply as the tests look at it.
type answer struct {
	status int
	header http.Header
	body   []byte
	code   string // Google's, from an error document
	text   string
}

func (a answer) String() string { return fmt.Sprintf("%d %s %.300q", a.status, a.code, a.body) }

func (c *caller) do(ctx context.Context, method, path, body string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+"/v1/projects/"+c.project+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return read(c.client.Do(req))
}

func read(resp *http.Response, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, header: resp.Header}
	if a.body, err = io.ReadAll(resp.Body); err != nil {
		return a, err
	}
	var doc struct {
		Error struct {
			Code            int
			Status, Message string
		}
	}
	if json.Unmarshal(a.body, &doc) == nil {
		a.code, a.text = doc.Error.Status, doc.Error.Message
	}
	return a, nil
}

// call is do for a request that has to be answered.
func (c *caller) call(t *testing.T, method, path, body string) answer {
	t.Helper()
	a, err := c.do(t.Context(), method, path, body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// must is call for a request that has to succeed.
func (c *caller) must(t *testing.T, method, path, body string) answer {
	t.Helper()
	a := c.call(t, method, path, body)
	if a.status != http.StatusOK {
		t.Fatalf("%s %s = %v, want 200", method, path, a)
	}
	return a
}

func (c *caller) publish(t *testing.T, topic, body string) answer {
	t.Helper()
	return c.call(t, "POST", "/topics/"+topic+":publish", body)
}

// serve runs p on a loopback socket until the test ends.
func serve(t testing.TB, p *PubSub) *caller {
	t.Helper()
	ln, err := localcloud.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := localcloud.Serve(ln, p)
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = s.Close()
	})
	return &caller{base: s.URL(), project: "local", client: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// piped is serve without a socket, for synctest bubbles; stop ends it inside the bubble.
func piped(p *PubSub) (c *caller, stop func()) {
	ln := localcloud.NewPipeListener()
	s := localcloud.Serve(ln, p)
	transport := &http.Transport{DialContext: ln.DialContext, MaxIdleConnsPerHost: 16}
	return &caller{base: s.URL(), project: "local", client: &http.Client{Transport: transport}}, func() {
		transport.CloseIdleConnections()
		_ = s.Close()
	}
}

// testMessage is a message as a client would write it.
type testMessage struct {
	Data        []byte            `json:"data,omitempty"`
	Attributes  map[string]string `json:"attributes,omitempty"`
	OrderingKey string            `json:"orderingKey,omitempty"`
}

// publishBody is what a client that uses the standard encoder would send.
func publishBody(msgs ...testMessage) string {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(map[string]any{"messages": msgs}); err != nil {
		panic(err)
	}
	return b.String()
}

func texts(key string, data ...string) []testMessage {
	var out []testMessage
	for _, d := range data {
		out = append(out, testMessage{Data: []byte(d), OrderingKey: key})
	}
	return out
}

func messageIDs(t *testing.T, a answer) []string {
	t.Helper()
	var doc struct{ MessageIDs []string }
	if err := json.Unmarshal(a.body, &doc); err != nil {
		t.Fatalf("%v: %v", a, err)
	}
	return doc.MessageIDs
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// newTopic returns a PubSub with the topic "hooks".
func newTopic(t testing.TB, o Options, to TopicOptions) *PubSub {
	t.Helper()
	p := New(o)
	if err := p.CreateTopic("hooks", to); err != nil {
		t.Fatal(err)
	}
	return p
}

func data(p *PubSub, topic string) []string {
	out := []string{}
	for _, m := range p.Published(topic) {
		out = append(out, string(m.Data))
	}
	return out
}
