package localpubsub

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ankusa-connect/ankusa-connect/internal/peers"
)

// The suite that lets localpubsub be believed: one list of cases, run against localpubsub, against
// Google's emulator, and against the service itself when the environment names a project.
//
//	ANKUSA_REQUIRE_PEERS=emulator     the emulator has to be there: without it the test fails
//	ANKUSA_PUBSUB_EMULATOR_JAR        where its jar is, when it is in none of the usual folders
//	ANKUSA_PUBSUB_CONFORMANCE_PROJECT a real project, in which topics "ankusa-conf-…" come and go
//	ANKUSA_PUBSUB_CONFORMANCE_TOKEN   an access token for it

// peer is one implementation.
type peer struct {
	*caller
	name     string
	emulator bool
}

// want is what a request is answered: a status, and Google's code unless it is 200.
type want struct {
	status int
	code   string
}

var (
	ok       = want{200, ""}
	badArg   = want{400, "INVALID_ARGUMENT"}
	precond  = want{400, "FAILED_PRECONDITION"}
	notThere = want{404, "NOT_FOUND"}
	taken    = want{409, "ALREADY_EXISTS"}
)

// difference is where the emulator is known not to do as the service does. The suite insists on it:
// when the emulator comes to agree, the entry has to go.
type difference struct {
	want
	why string
}

// publishCases are publish requests to a topic that exists.
var publishCases = []struct {
	name     string
	body     string
	want     want
	emulator *difference // nil: as want
}{
	{name: "data and attribute and key", body: `{"messages":[{"data":"aGVsbG8=","attributes":{"a":"b"},"orderingKey":"k"}]}`, want: ok},
	{name: "attributes alone", body: `{"messages":[{"attributes":{"a":"b"}}]}`, want: ok},
	{name: "empty attribute value", body: `{"messages":[{"attributes":{"a":""}}]}`, want: ok},
	{name: "names as in the proto file", body: `{"messages":[{"data":"YQ==","ordering_key":"k"}]}`, want: ok},
	{name: "null fields are absent ones", body: `{"messages":[{"data":"YQ==","attributes":null,"orderingKey":null,"messageId":null}]}`, want: ok},
	{name: "the publisher's message id is ignored", body: `{"messages":[{"data":"YQ==","messageId":"77"}]}`, want: ok},
	{name: "white space", body: " {\n\t\"messages\" : [ {\"data\": \"YQ==\" } ] }\r\n", want: ok},
	{name: "one key for all", body: publishBody(texts("k", "a", "b", "c")...), want: ok},
	{name: "escapes", body: `{"messages":[{"data":"Y\u0051==","orderingKey":"\ud83d\ude00\u00e9\/\n"}]}`, want: ok},

	{name: "base64: url alphabet", body: `{"messages":[{"data":"-_-_"}]}`, want: ok},
	{name: "base64: standard alphabet", body: `{"messages":[{"data":"+/+/"}]}`, want: ok},
	{name: "base64: no padding", body: `{"messages":[{"data":"aGVsbG8"}]}`, want: ok},
	{name: "base64: bits left over", body: `{"messages":[{"data":"YR=="}]}`, want: ok},
	{name: "base64: not base64", body: `{"messages":[{"data":"!!"}]}`, want: badArg},
	{name: "base64: one character", body: `{"messages":[{"data":"Y"}]}`, want: badArg},
	{name: "base64: line end", body: `{"messages":[{"data":"YQ==\n"}]}`, want: badArg},
	{name: "base64: half the padding", body: `{"messages":[{"data":"YQ="}]}`, want: badArg,
		emulator: &difference{ok, "its decoder strips any number of ="}},

	{name: "no messages", body: `{"messages":[]}`, want: badArg},
	{name: "null messages", body: `{"messages":null}`, want: badArg},
	{name: "empty object", body: `{}`, want: badArg},
	{name: "empty message", body: `{"messages":[{}]}`, want: badArg},
	{name: "empty data", body: `{"messages":[{"data":""}]}`, want: badArg},
	{name: "one empty among good", body: `{"messages":[{"data":"YQ=="},{"data":""},{"data":"YQ=="}]}`, want: badArg},
	{name: "null message", body: `{"messages":[{"data":"YQ=="},null]}`, want: badArg},
	{name: "messages no list", body: `{"messages":{"data":"YQ=="}}`, want: badArg},
	{name: "data a number", body: `{"messages":[{"data":5}]}`, want: badArg},
	{name: "attributes a list", body: `{"messages":[{"data":"YQ==","attributes":[]}]}`, want: badArg},
	{name: "attribute null", body: `{"messages":[{"data":"YQ==","attributes":{"a":null}}]}`, want: badArg},
	{name: "attribute an object", body: `{"messages":[{"data":"YQ==","attributes":{"a":{}}}]}`, want: badArg},
	{name: "attribute a number", body: `{"messages":[{"data":"YQ==","attributes":{"a":1}}]}`, want: badArg,
		emulator: &difference{ok, "it writes scalars as text"}},
	{name: "key a number", body: `{"messages":[{"data":"YQ==","orderingKey":7}]}`, want: badArg,
		emulator: &difference{ok, "it writes scalars as text"}},
	{name: "unknown field", body: `{"messages":[{"data":"YQ==","bogus":1}]}`, want: badArg},
	{name: "unknown field beside messages", body: `{"messages":[{"data":"YQ=="}],"bogus":1}`, want: badArg},
	{name: "another case", body: `{"messages":[{"Data":"YQ=="}]}`, want: badArg},
	{name: "field twice", body: `{"messages":[{"data":"YQ==","data":"Yg=="}]}`, want: badArg,
		emulator: &difference{ok, "the last one wins"}},
	{name: "attribute twice", body: `{"messages":[{"data":"YQ==","attributes":{"a":"1","a":"2"}}]}`, want: badArg,
		emulator: &difference{ok, "the last one wins"}},
	{name: "not JSON", body: `nonsense`, want: badArg},
	{name: "null", body: `null`, want: badArg},
	{name: "cut short", body: `{"messages":[{"data":"YQ=="}]`, want: badArg},
	{name: "trailing comma", body: `{"messages":[{"data":"YQ=="},]}`, want: badArg},
	{name: "something after", body: `{"messages":[{"data":"YQ=="}]} x`, want: badArg,
		emulator: &difference{ok, "it stops reading at the end of the object"}},
	{name: "single quotes", body: `{'messages':[{'data':'YQ=='}]}`, want: badArg,
		emulator: &difference{ok, "its parser is lenient"}},
	{name: "not UTF-8", body: "{\"messages\":[{\"data\":\"YQ==\",\"orderingKey\":\"a\xc5z\"}]}", want: badArg,
		emulator: &difference{ok, "it stores U+FFFD"}},
	{name: "half a surrogate pair", body: `{"messages":[{"data":"YQ==","orderingKey":"\ud83d"}]}`, want: badArg,
		emulator: &difference{ok, "it stores a question mark"}},

	{name: "two keys", body: publishBody(append(texts("a", "x"), texts("b", "y")...)...), want: precond,
		emulator: &difference{ok, "it does not compare keys"}},
	{name: "a key and none", body: publishBody(append(texts("a", "x"), texts("", "y")...)...), want: precond,
		emulator: &difference{ok, "it does not compare keys"}},
	{name: "1000 messages", body: publishBody(slices.Repeat(texts("", "x"), 1000)...), want: ok},
	{name: "1001 messages", body: publishBody(slices.Repeat(texts("", "x"), 1001)...), want: badArg},
	{name: "100 attributes", body: publishBody(testMessage{Attributes: attributes(100)}), want: ok},
	{name: "101 attributes", body: publishBody(testMessage{Attributes: attributes(101)}), want: badArg,
		emulator: &difference{ok, "it has no limits but on the number of messages"}},
	{name: "attribute name of 256 bytes", body: attribute(strings.Repeat("n", 256), "v"), want: ok},
	{name: "attribute name of 257 bytes", body: attribute(strings.Repeat("n", 257), "v"), want: badArg,
		emulator: &difference{ok, "it has no limits but on the number of messages"}},
	{name: "attribute name of 129 two-byte letters", body: attribute(strings.Repeat("é", 129), "v"), want: badArg,
		emulator: &difference{ok, "it has no limits but on the number of messages"}},
	{name: "empty attribute name", body: attribute("", "v"), want: badArg,
		emulator: &difference{ok, "it does not look at names"}},
	{name: "reserved attribute name", body: attribute("googx", "v"), want: badArg,
		emulator: &difference{ok, "it does not look at names"}},
	{name: "attribute value of 1024 bytes", body: attribute("n", strings.Repeat("v", 1024)), want: ok},
	{name: "attribute value of 1025 bytes", body: attribute("n", strings.Repeat("v", 1025)), want: badArg,
		emulator: &difference{ok, "it has no limits but on the number of messages"}},
	{name: "key of 1024 bytes", body: publishBody(texts(strings.Repeat("k", 1024), "x")...), want: ok},
	{name: "key of 1025 bytes", body: publishBody(texts(strings.Repeat("k", 1025), "x")...), want: badArg,
		emulator: &difference{ok, "it has no limits but on the number of messages"}},
	{name: "10,000,000 bytes of attributes and data", body: attributesOf(MaxRequestBytes), want: ok},
	{name: "10,000,001 bytes of attributes and data", body: attributesOf(MaxRequestBytes + 1), want: badArg,
		emulator: &difference{ok, "it has no limits but on the number of messages"}},
	{name: "a body of 10,485,760 bytes", body: bodyOf(MaxBodyBytes), want: ok},
	{name: "a body of 10,485,761 bytes", body: bodyOf(MaxBodyBytes + 1), want: badArg,
		emulator: &difference{ok, "it has no limits but on the number of messages"}},
}

func attributes(n int) map[string]string {
	m := map[string]string{}
	for i := range n {
		m[fmt.Sprintf("name%d", i)] = "value"
	}
	return m
}

func attribute(name, value string) string {
	return publishBody(testMessage{Attributes: map[string]string{name: value}})
}

// attributesOf is a request that counts n bytes, most of it in attributes so that the HTTP body
// stays below its own limit.
func attributesOf(n int) string {
	full := testMessage{Attributes: map[string]string{}}
	for i := range MaxAttributes {
		full.Attributes[fmt.Sprintf("n%02d", i)] = strings.Repeat("v", MaxAttributeValueBytes)
	}
	one := MaxAttributes * (3 + MaxAttributeValueBytes)
	msgs := slices.Repeat([]testMessage{full}, n/one)
	return publishBody(append(msgs, testMessage{Data: bytes.Repeat([]byte("d"), n%one)})...)
}

// bodyOf is a request of exactly n bytes.
func bodyOf(n int) string {
	const frame = len(`{"messages":[{"data":""}]}`)
	encoded := (n - frame) / 4 * 4
	body := `{"messages":[{"data":"` + strings.Repeat("A", encoded) + `"}]}`
	return body + strings.Repeat(" ", n-len(body))
}

// flowCases are sequences of requests.
var flowCases = []struct {
	name string
	run  func(*testing.T, *peer)
}{
	{"topics come, are listed and go", func(t *testing.T, p *peer) {
		topic := p.unique(t)
		p.expect(t, "GET", "/topics/"+topic, "", notThere)
		p.expect(t, "POST", "/topics/"+topic+":publish", publishBody(texts("", "x")...), notThere)
		p.expect(t, "PUT", "/topics/"+topic, `{}`, ok)
		p.expect(t, "PUT", "/topics/"+topic, `{}`, taken)
		p.expect(t, "GET", "/topics/"+topic, "", ok)
		if a := p.must(t, "GET", "/topics", ""); !strings.Contains(string(a.body), p.topicPath(topic)) {
			t.Errorf("list of topics %v lacks %s", a, topic)
		}
		p.expect(t, "DELETE", "/topics/"+topic, "", ok)
		p.expect(t, "DELETE", "/topics/"+topic, "", notThere)
		p.expect(t, "GET", "/topics/"+topic, "", notThere)
	}},
	{"names that are none", func(t *testing.T, p *peer) {
		for _, name := range []string{"ab", "1abc", "goog-x", "a%20bc", "a%C3%A9bc"} {
			p.expect(t, "PUT", "/topics/"+name, `{}`, badArg)
		}
		p.expect(t, "PUT", "/subscriptions/ab", `{"topic":"`+p.topicPath("abc")+`"}`, badArg)
	}},
	{"names with escapes", func(t *testing.T, p *peer) {
		topic := p.unique(t)
		p.must(t, "PUT", "/topics/"+topic+"%2B%25%7E._", `{}`)
		defer p.call(t, "DELETE", "/topics/"+topic+"%2B%25%7E._", "")
		if a := p.must(t, "GET", "/topics/"+topic+"+%25~._", ""); !strings.Contains(string(a.body), topic+"+%~._") {
			t.Errorf("got %v, want the name unescaped", a)
		}
		p.must(t, "POST", "/topics/"+topic+"%2B%25%7E%2E%5F:publish", publishBody(texts("", "x")...))
	}},
	{"subscriptions of a topic", func(t *testing.T, p *peer) {
		topic := p.topic(t)
		if a := p.must(t, "GET", "/topics/"+topic+"/subscriptions", ""); strings.Contains(string(a.body), "subscriptions") {
			t.Errorf("a new topic's subscriptions are %v, want none", a)
		}
		p.expect(t, "PUT", "/subscriptions/"+topic+"-s", `{"topic":"`+p.topicPath(topic+"-none")+`"}`, notThere)
		p.expect(t, "PUT", "/subscriptions/"+topic+"-s", `{}`, badArg)
		p.expect(t, "PUT", "/subscriptions/"+topic+"-s", `{"topic":"`+p.topicPath(topic)+`","ackDeadlineSeconds":601}`, badArg)
		sub := p.subscription(t, topic, false)
		p.expect(t, "PUT", "/subscriptions/"+sub, `{"topic":"`+p.topicPath(topic)+`"}`, taken)
		p.expect(t, "GET", "/subscriptions/"+sub, "", ok)
		if a := p.must(t, "GET", "/topics/"+topic+"/subscriptions", ""); !strings.Contains(string(a.body), "/subscriptions/"+sub) {
			t.Errorf("subscriptions of the topic are %v, want %s", a, sub)
		}
		p.must(t, "DELETE", "/topics/"+topic, "")
		if a := p.must(t, "GET", "/subscriptions/"+sub, ""); !strings.Contains(string(a.body), "_deleted-topic_") {
			t.Errorf("subscription of a deleted topic is %v, want _deleted-topic_", a)
		}
		p.expect(t, "DELETE", "/subscriptions/"+sub, "", ok)
		p.expect(t, "DELETE", "/subscriptions/"+sub, "", notThere)
		p.expect(t, "POST", "/subscriptions/"+sub+":pull", `{"maxMessages":1,"returnImmediately":true}`, notThere)
	}},
	{"what is published is pulled, byte for byte", func(t *testing.T, p *peer) {
		topic := p.topic(t)
		sub := p.subscription(t, topic, false)
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		sent := []testMessage{
			{Data: all, Attributes: map[string]string{"ankusa_id": "01", "é<>&\u2028": "\t\"\\\ufffe😀"}, OrderingKey: "k\u0000é"},
			{Data: []byte("b"), OrderingKey: "k\u0000é"},
			{Attributes: map[string]string{"empty": ""}, OrderingKey: "k\u0000é"},
		}
		ids := messageIDs(t, p.must(t, "POST", "/topics/"+topic+":publish", publishBody(sent...)))
		got := p.pull(t, sub, len(sent))
		if len(ids) != len(sent) || len(got) != len(sent) {
			t.Fatalf("%d messages sent, %d ids, %d pulled", len(sent), len(ids), len(got))
		}
		for i, id := range ids {
			j := slices.IndexFunc(got, func(r pulled) bool { return r.Message.MessageID == id })
			if j < 0 {
				t.Errorf("message %s was not pulled", id)
				continue
			}
			m := got[j].Message
			if !bytes.Equal(m.Data, sent[i].Data) || m.OrderingKey != sent[i].OrderingKey || fmt.Sprint(m.Attributes) != fmt.Sprint(sent[i].Attributes) {
				t.Errorf("message %d came as %q, want %q", i, m, sent[i])
			}
			if _, err := time.Parse(time.RFC3339Nano, m.PublishTime); err != nil {
				t.Errorf("publish time: %v", err)
			}
		}
	}},
	{"a refused request stores nothing", func(t *testing.T, p *peer) {
		topic := p.topic(t)
		sub := p.subscription(t, topic, false)
		p.expect(t, "POST", "/topics/"+topic+":publish", `{"messages":[{"data":"YmFk"},{}]}`, badArg)
		p.must(t, "POST", "/topics/"+topic+":publish", publishBody(texts("", "good")...))
		if got := p.pull(t, sub, 1); len(got) != 1 || string(got[0].Message.Data) != "good" {
			t.Errorf("pulled %v, want good alone", got)
		}
	}},
	{"a subscription gets what comes after it", func(t *testing.T, p *peer) {
		topic := p.topic(t)
		p.must(t, "POST", "/topics/"+topic+":publish", publishBody(texts("", "before")...))
		sub := p.subscription(t, topic, false)
		p.must(t, "POST", "/topics/"+topic+":publish", publishBody(texts("", "after")...))
		if got := p.pull(t, sub, 1); len(got) != 1 || string(got[0].Message.Data) != "after" {
			t.Errorf("pulled %v, want after alone", got)
		}
	}},
	{"an ordering key waits for its acknowledgements", func(t *testing.T, p *peer) {
		topic := p.topic(t)
		sub := p.subscription(t, topic, true)
		p.must(t, "POST", "/topics/"+topic+":publish", publishBody(texts("k", "1", "2", "3")...))
		first := p.pull(t, sub, 2)
		if got := pulledData(first); fmt.Sprint(got) != "[1 2]" {
			t.Fatalf("pulled %v, want 1 and 2", got)
		}
		if got := p.pullNow(t, sub, 10); len(got) != 0 {
			t.Errorf("pulled %v while 1 and 2 were out, want nothing", pulledData(got))
		}
		p.ack(t, sub, first)
		if got := pulledData(p.pull(t, sub, 1)); fmt.Sprint(got) != "[3]" {
			t.Errorf("pulled %v after the acknowledgement, want 3", got)
		}
	}},
	{"a nack brings the message back", func(t *testing.T, p *peer) {
		topic := p.topic(t)
		sub := p.subscription(t, topic, false)
		p.must(t, "POST", "/topics/"+topic+":publish", publishBody(texts("", "x")...))
		got := p.pull(t, sub, 1)
		p.must(t, "POST", "/subscriptions/"+sub+":modifyAckDeadline", `{"ackIds":["`+got[0].AckID+`"],"ackDeadlineSeconds":0}`)
		again := p.pull(t, sub, 1)
		if len(again) != 1 || again[0].Message.MessageID != got[0].Message.MessageID {
			t.Fatalf("pulled %v, want message %s again", again, got[0].Message.MessageID)
		}
		p.ack(t, sub, again)
		if got := p.pullNow(t, sub, 1); len(got) != 0 {
			t.Errorf("pulled %v after the acknowledgement, want nothing", pulledData(got))
		}
	}},
	{"requests about nothing", func(t *testing.T, p *peer) {
		topic := p.topic(t)
		sub := p.subscription(t, topic, false)
		p.expect(t, "POST", "/subscriptions/"+sub+":pull", `{"returnImmediately":true}`, badArg)
		p.expect(t, "POST", "/subscriptions/"+sub+":acknowledge", `{}`, badArg)
		p.expect(t, "POST", "/subscriptions/"+sub+":modifyAckDeadline", `{"ackDeadlineSeconds":10}`, badArg)
		p.expect(t, "POST", "/subscriptions/"+sub+":modifyAckDeadline", `{"ackIds":["bogus"],"ackDeadlineSeconds":10}`, badArg)
		if !p.emulator { // which answers sometimes so, sometimes 200
			p.expect(t, "POST", "/subscriptions/"+sub+":acknowledge", `{"ackIds":["bogus"]}`, badArg)
		}
		p.except(t, "POST", "/topics/"+topic+":testIamPermissions", `{"permissions":["pubsub.topics.publish"]}`, ok,
			difference{want{501, "UNIMPLEMENTED"}, "it has no policies"})
		p.except(t, "PUT", "/subscriptions/"+topic+"-9", `{"topic":"`+p.topicPath(topic)+`","ackDeadlineSeconds":9}`, badArg,
			difference{ok, "it takes any deadline up to 600 s"})
		p.call(t, "DELETE", "/subscriptions/"+topic+"-9", "")
	}},
}

func TestConformance(t *testing.T) {
	for _, start := range []func(*testing.T) *peer{startLocal, startEmulator, namedProject} {
		p := start(t)
		if p == nil {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			topic := p.topic(t)
			ran, differing := 0, 0
			for _, c := range publishCases {
				t.Run("publish/"+c.name, func(t *testing.T) {
					path := "/topics/" + topic + ":publish"
					ran++
					if c.emulator == nil {
						p.expect(t, "POST", path, c.body, c.want)
						return
					}
					differing++
					p.except(t, "POST", path, c.body, c.want, *c.emulator)
				})
			}
			for _, c := range flowCases {
				ran++
				t.Run(c.name, func(t *testing.T) { c.run(t, p) })
			}
			note := ""
			if p.emulator {
				note = fmt.Sprintf(", %d of them by the table of known differences", differing)
			}
			t.Logf("conformance: %d cases ran against %s%s", ran, p.name, note)
			fmt.Printf("conformance: pubsub: %d cases ran against %s%s\n", ran, p.name, note)
		})
	}
}

func startLocal(t *testing.T) *peer {
	return &peer{caller: serve(t, New(Options{})), name: "localpubsub"}
}

// namedProject is the service itself, when the environment says so.
func namedProject(t *testing.T) *peer {
	project, token := os.Getenv("ANKUSA_PUBSUB_CONFORMANCE_PROJECT"), os.Getenv("ANKUSA_PUBSUB_CONFORMANCE_TOKEN")
	if project == "" || token == "" {
		t.Log("conformance: not run against Google Cloud Pub/Sub: ANKUSA_PUBSUB_CONFORMANCE_PROJECT and _TOKEN are not set")
		return nil
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	t.Cleanup(transport.CloseIdleConnections)
	return &peer{name: "Google Cloud Pub/Sub", caller: &caller{
		base: "https://pubsub.googleapis.com", project: project, token: token, client: &http.Client{Transport: transport},
	}}
}

// startEmulator starts Google's emulator and ends it with the test.
func startEmulator(t *testing.T) *peer {
	if !peers.IsRequired("emulator") && peers.EmulatorJar() == "" {
		t.Log("conformance: not run against Google's emulator, which is not here")
		fmt.Println("conformance: pubsub: Google's emulator is not here")
		return nil
	}
	transport := &http.Transport{}
	base := peers.PubSubEmulator(t)
	t.Cleanup(transport.CloseIdleConnections)
	return &peer{name: "Google's emulator " + filepath.Base(peers.EmulatorJar()), emulator: true, caller: &caller{
		base: base, project: "local", client: &http.Client{Transport: transport, Timeout: time.Minute},
	}}
}

// expect sends a request and checks its answer.
func (p *peer) expect(t *testing.T, method, path, body string, w want) {
	t.Helper()
	a := p.call(t, method, path, body)
	if got := (want{a.status, a.code}); got != w {
		t.Errorf("%s %s %.200q = %v, want %v", method, path, body, a, w)
	}
}

// except is expect where the emulator does otherwise.
func (p *peer) except(t *testing.T, method, path, body string, w want, d difference) {
	t.Helper()
	if !p.emulator {
		p.expect(t, method, path, body, w)
		return
	}
	a := p.call(t, method, path, body)
	if got := (want{a.status, a.code}); got != d.want {
		t.Errorf("%s %s %.200q = %v, want %v, by the table of differences (%s)", method, path, body, a, d.want, d.why)
	}
}

func (p *peer) topicPath(topic string) string { return TopicPath(p.project, topic) }

// unique is a name that no other run uses.
func (p *peer) unique(t *testing.T) string {
	return fmt.Sprintf("ankusa-conf-%x", time.Now().UnixNano())
}

// topic makes a topic for the length of the test.
func (p *peer) topic(t *testing.T) string {
	t.Helper()
	topic := p.unique(t)
	p.must(t, "PUT", "/topics/"+topic, `{}`)
	t.Cleanup(func() { _, _ = p.do(context.Background(), "DELETE", "/topics/"+topic, "") })
	return topic
}

func (p *peer) subscription(t *testing.T, topic string, ordered bool) string {
	t.Helper()
	sub := topic + "-sub"
	p.must(t, "PUT", "/subscriptions/"+sub, fmt.Sprintf(`{"topic":%q,"enableMessageOrdering":%v,"ackDeadlineSeconds":60}`, p.topicPath(topic), ordered))
	t.Cleanup(func() { _, _ = p.do(context.Background(), "DELETE", "/subscriptions/"+sub, "") })
	return sub
}

// pulled is a received message as the REST API writes it.
type pulled struct {
	AckID   string
	Message struct {
		testMessage
		MessageID, PublishTime string
	}
}

func (p *peer) pullNow(t *testing.T, sub string, n int) []pulled {
	t.Helper()
	return p.pullOnce(t, sub, n, true)
}

func (p *peer) pullOnce(t *testing.T, sub string, n int, atOnce bool) []pulled {
	t.Helper()
	a := p.must(t, "POST", "/subscriptions/"+sub+":pull", fmt.Sprintf(`{"maxMessages":%d,"returnImmediately":%v}`, n, atOnce))
	var doc struct{ ReceivedMessages []pulled }
	if err := json.Unmarshal(a.body, &doc); err != nil {
		t.Fatal(err)
	}
	return doc.ReceivedMessages
}

// pull pulls until it has n messages: the service may hand out fewer at a time.
func (p *peer) pull(t *testing.T, sub string, n int) (got []pulled) {
	t.Helper()
	for range 10 {
		if got = append(got, p.pullOnce(t, sub, n-len(got), false)...); len(got) >= n {
			break
		}
	}
	return got
}

func (p *peer) ack(t *testing.T, sub string, msgs []pulled) {
	t.Helper()
	ids := []string{}
	for _, m := range msgs {
		ids = append(ids, m.AckID)
	}
	body, _ := json.Marshal(map[string]any{"ackIds": ids})
	p.must(t, "POST", "/subscriptions/"+sub+":acknowledge", string(body))
}

func pulledData(msgs []pulled) (out []string) {
	for _, m := range msgs {
		out = append(out, string(m.Message.Data))
	}
	return out
}
