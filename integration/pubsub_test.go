package integration

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/internal/peers"
	"github.com/ankusa-connect/ankusa-connect/localcloud"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localpubsub"
	"github.com/ankusa-connect/ankusa-connect/pubsub"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

const project = "wire-tests"

func TestPubSub(t *testing.T) {
	t.Run("localpubsub", func(t *testing.T) {
		l, err := localcloud.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := localcloud.Serve(l, localpubsub.New(localpubsub.Options{}))
		t.Cleanup(func() { _ = s.Close() })
		pubsubSuite(t, s.URL())
	})
	t.Run("emulator", func(t *testing.T) { pubsubSuite(t, peers.PubSubEmulator(t)) })
	if host := os.Getenv(pubsub.EmulatorVariable); host != "" {
		endpoint, err := pubsub.ResolveEndpoint("", os.Getenv)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(pubsub.EmulatorVariable, func(t *testing.T) { peers.Await(t, endpoint.URL); pubsubSuite(t, endpoint.URL) })
	}
}

// pubsubPeer is a server as a plain REST caller and our client see it.
type pubsubPeer struct {
	t      *testing.T
	base   string
	http   *http.Client
	client *pubsub.Client
}

func newPubSubPeer(t *testing.T, base string) *pubsubPeer {
	t.Helper()
	w := wire.New(wire.Options{Service: "pubsub", Timeout: 30 * time.Second})
	t.Cleanup(w.Close)
	client, err := pubsub.New(pubsub.Options{Project: project, Endpoint: base, Wire: w})
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &pubsubPeer{t: t, base: base, http: &http.Client{Transport: transport, Timeout: time.Minute}, client: client}
}

// call makes a REST call as a stranger would and returns the decoded answer.
func (p *pubsubPeer) call(method, path string, body any) map[string]any {
	p.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(context.WithoutCancel(p.t.Context()), method, p.base+"/v1/"+path, bytes.NewReader(raw))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	reply, err := p.http.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer reply.Body.Close()
	text, _ := io.ReadAll(reply.Body)
	if reply.StatusCode != http.StatusOK {
		p.t.Fatalf("%s %s: %d %s", method, path, reply.StatusCode, text)
	}
	var out map[string]any
	_ = json.Unmarshal(text, &out)
	return out
}

// topic makes a topic with a subscription and returns the short names of both.
func (p *pubsubPeer) topic(ordered bool) string {
	p.t.Helper()
	name := fmt.Sprintf("wire-%d", time.Now().UnixNano())
	p.call("PUT", "projects/"+project+"/topics/"+name, map[string]any{})
	p.call("PUT", "projects/"+project+"/subscriptions/"+name, map[string]any{
		"topic": "projects/" + project + "/topics/" + name, "enableMessageOrdering": ordered, "ackDeadlineSeconds": 60,
	})
	return name
}

type pulled struct {
	data       []byte
	attributes map[string]any
	key        string
}

// pull reads and acknowledges n messages.
func (p *pubsubPeer) pull(name string, n int) (out []pulled) {
	p.t.Helper()
	for tries := 0; len(out) < n && tries < 50; tries++ {
		got := p.call("POST", "projects/"+project+"/subscriptions/"+name+":pull", map[string]any{"maxMessages": 1000})
		list, _ := got["receivedMessages"].([]any)
		var acks []string
		for _, x := range list {
			r := x.(map[string]any)
			m := r["message"].(map[string]any)
			text, _ := m["data"].(string)
			data, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				p.t.Fatal(err)
			}
			key, _ := m["orderingKey"].(string)
			attributes, _ := m["attributes"].(map[string]any)
			out = append(out, pulled{data, attributes, key})
			acks = append(acks, r["ackId"].(string))
		}
		if len(acks) > 0 {
			p.call("POST", "projects/"+project+"/subscriptions/"+name+":acknowledge", map[string]any{"ackIds": acks})
		}
	}
	if len(out) != n {
		p.t.Fatalf("pulled %d messages, want %d", len(out), n)
	}
	return out
}

func pubsubSuite(t *testing.T, base string) {
	t.Run("what we publish is what a subscriber reads", func(t *testing.T) {
		p := newPubSubPeer(t, base)
		name := p.topic(false)
		bodies := [][]byte{{0x7b, 0xe9, 0x00, 0xff}, []byte("text <>&/\"\\"), []byte(strings.Repeat("é", 500_000)), []byte("z")}
		var msgs []pubsub.Message
		for i, b := range bodies {
			msgs = append(msgs, pubsub.Message{Data: b, Attributes: []pubsub.Attribute{{Name: "n", Value: fmt.Sprint(i)}, {Name: "awkward", Value: "\"\\\n\tü☃"}}})
		}
		for i, err := range p.client.Publish(t.Context(), name, msgs) {
			if err != nil {
				t.Errorf("message %d: %v", i, err)
			}
		}
		for _, m := range p.pull(name, len(bodies)) {
			var i int
			_, _ = fmt.Sscan(m.attributes["n"].(string), &i)
			if !bytes.Equal(m.data, bodies[i]) || m.attributes["awkward"] != "\"\\\n\tü☃" {
				t.Errorf("message %d came with %d bytes and %q", i, len(m.data), m.attributes["awkward"])
			}
		}
	})
	t.Run("the order of a key", func(t *testing.T) {
		p := newPubSubPeer(t, base)
		name := p.topic(true)
		var msgs []pubsub.Message
		for i := range 300 {
			msgs = append(msgs, pubsub.Message{Data: fmt.Append(nil, i), OrderingKey: "k"})
		}
		for i, err := range p.client.Publish(t.Context(), name, msgs) {
			if err != nil {
				t.Errorf("message %d: %v", i, err)
			}
		}
		for i, m := range p.pull(name, 300) {
			if string(m.data) != fmt.Sprint(i) || m.key != "k" {
				t.Fatalf("message %d is %q of key %q", i, m.data, m.key)
			}
		}
	})
	t.Run("a missing topic is a config error", func(t *testing.T) {
		p := newPubSubPeer(t, base)
		for i, err := range p.client.Publish(t.Context(), "no-such-topic", []pubsub.Message{{Data: []byte("a")}, {Data: []byte("b")}}) {
			if e := classify.Of(err); e == nil || e.Class != classify.Config || e.Code != "NOT_FOUND" {
				t.Errorf("message %d: %v, want config NOT_FOUND", i, err)
			}
		}
	})
}
