package output_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localpubsub"
)

// requestLog keeps which hooks each request carried, by ankusa_id and in order.
type requestLog struct {
	mu  sync.Mutex
	ids []string
}

// watch is a fault that does nothing but look.
func (l *requestLog) watch(action string) localcloud.Fault {
	return localcloud.Fault{Action: action, If: func(c *localcloud.Call) bool {
		var ids []string
		for _, e := range c.Entries {
			ids = append(ids, strings.TrimPrefix(e.Attributes["ankusa_id"], "id-"))
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ids = append(l.ids, strings.Join(ids, " "))
		return false
	}}
}

func (l *requestLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.ids, " | ")
}

// Ten are sent. The answers that follow name eight and one failure and forget one; name a failure twice;
// name nobody; name somebody who was never sent. What an answer does not confirm is sent again, once per
// answer, and nothing else is.
func TestAnswersThatDoNotAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipedPipeline(t, newScript(numbered(10)))
		log := &requestLog{}
		id := func(id string) func(*localcloud.Entry) bool {
			return func(e *localcloud.Entry) bool { return e.Attributes["ankusa_id"] == id }
		}
		p.sqs.Faults.Add(log.watch("SendMessageBatch"),
			localcloud.Fault{Action: "SendMessageBatch", Nth: 1, Effect: localcloud.Effect{Entries: []localcloud.EntryFault{
				{If: id("id-3"), Do: localcloud.Refuse, Code: "InternalError"},
				{If: id("id-7"), Do: localcloud.DropUnstored},
			}}},
			localcloud.Fault{Action: "SendMessageBatch", Nth: 2, Effect: localcloud.Effect{Entries: []localcloud.EntryFault{
				{If: id("id-3"), Do: localcloud.FailTwice, Code: "InternalError"},
				{If: id("id-7"), Do: localcloud.Refuse, Code: "InternalError"},
			}}},
			localcloud.Fault{Action: "SendMessageBatch", Nth: 3, Effect: localcloud.Effect{Reply: &localcloud.Reply{Body: []byte(`{}`)}}},
			localcloud.Fault{Action: "SendMessageBatch", Nth: 4, Effect: localcloud.Effect{Entries: []localcloud.EntryFault{
				{If: id("id-3"), Do: localcloud.ExtraUnknown},
				{If: id("id-7"), Do: localcloud.Refuse, Code: "InternalError"},
			}}},
			localcloud.Fault{Action: "SendMessageBatch", Nth: 5, Effect: localcloud.Effect{Reply: &localcloud.Reply{
				Body: []byte(`{"Successful":[{"Id":"nobody"},{"Id":"1"},{"Id":""}],"Failed":[{"Id":"99","Code":"InternalError"}]}`)}}},
		)
		p.run(p.sqsYAML("hooks", ""))
		if got, want := log.String(), "0 1 2 3 4 5 6 7 8 9 | 3 7 | 3 7 | 3 7 | 7 | 7"; got != want {
			t.Errorf("requests carried %s, want %s", got, want)
		}
		checkOnce(t, p.stored("hooks"), 0, 10)
		checkDone(t, p, 10)
		if logs := p.logs.String(); !strings.Contains(logs, "names 4 entries that were not sent") || strings.Contains(strings.ToLower(logs), "panic") {
			t.Errorf("the log says nothing of the unknown id, or too much:\n%s", logs)
		}
	})
}

// The same for Pub/Sub, whose answers name nobody: a wrong number of message ids confirms none.
func TestWrongNumberOfMessageIDsConfirmsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipedPipeline(t, newScript(numbered(10)))
		log := &requestLog{}
		p.pubsub.Faults.Add(log.watch("Publish"),
			localcloud.Fault{Action: "Publish", Nth: 1, Effect: localcloud.Effect{Entries: []localcloud.EntryFault{{Index: 3, Do: localcloud.DropUnstored}}}},
			localcloud.Fault{Action: "Publish", Nth: 2, Effect: localcloud.Effect{Entries: []localcloud.EntryFault{{Index: 3, Do: localcloud.Twice}}}},
			localcloud.Fault{Action: "Publish", Nth: 3, Effect: localcloud.Effect{Reply: &localcloud.Reply{Body: []byte(`{}`)}}},
		)
		p.run(p.pubsubYAML("hooks", ""))
		if s := p.pubsub.Stats("hooks"); s.Requests != 4 || s.Sizes[10] != 4 {
			t.Errorf("requests carried %s, want all ten, four times", log)
		}
		checkDone(t, p, 10)
	})
}

// strange are answers that say nothing of the messages.
var strange = []struct {
	name   string
	class  string // of a failure that lasts
	status string // in its text; empty when there may be none
	effect localcloud.Effect
}{
	{"502 HTML", "transient", "502", localcloud.Effect{Reply: localcloud.HTML(502)}},
	{"503 empty", "throttled", "503", localcloud.Effect{Reply: &localcloud.Reply{Status: 503}}},
	{"400 HTML", "transient", "400", localcloud.Effect{Reply: localcloud.HTML(400)}},
	{"200 HTML", "transient", "200", localcloud.Effect{Reply: localcloud.HTML(200), Stored: true}},
	{"200 cut in half", "transient", "200", localcloud.Effect{Truncate: true, Stored: true}},
	{"200 null", "transient", "200", localcloud.Effect{Reply: &localcloud.Reply{Body: []byte("null")}, Stored: true}},
	{"200 empty", "transient", "200", localcloud.Effect{Reply: &localcloud.Reply{}, Stored: true}},
	{"500 without end", "transient", "500", localcloud.Effect{Reply: &localcloud.Reply{Status: 500}, Endless: true}},
	{"307", "transient", "307", localcloud.Effect{Reply: localcloud.Redirect("http://elsewhere.test/")}},
	{"401 HTML", "transient", "401", localcloud.Effect{Reply: localcloud.HTML(401)}},
	{"404 HTML", "transient", "404", localcloud.Effect{Reply: localcloud.HTML(404)}},
}

// spread makes ten hooks for each of n queues, in metadata queue: "q0" … Each queue fails in its own way,
// so that one pipeline goes through all of them.
func spread(n int) []hook {
	hooks := numbered(10 * n)
	for i := range hooks {
		hooks[i].meta["queue"] = fmt.Sprintf("q%d", i/10)
	}
	return hooks
}

// spreadYAML is an output whose queue or topic is the hook's own.
func (p *pipeline) spreadYAML(sqs bool, suffix, fields string) string {
	if sqs {
		return p.sqsYAML("${! @queue }"+suffix, "endpoint: "+p.server.sqs.URL()+"\n"+fields)
	}
	return p.pubsubYAML("topic-${! @queue }", fields)
}

func resource(sqs bool, i int, suffix string) string {
	if sqs {
		return fmt.Sprintf("q%d%s", i, suffix)
	}
	return fmt.Sprintf("topic-q%d", i)
}

// Twice such an answer, then the API: nobody is nacked, and on a FIFO queue nothing is stored twice,
// since every resend is the same message.
func TestAnswersThatAreNotTheAPIAreOutlived(t *testing.T) {
	bothClouds(t, func(t *testing.T, sqs bool) {
		synctest.Test(t, func(t *testing.T) {
			p := newPipedPipeline(t, newScript(spread(len(strange))))
			for i, c := range strange {
				p.faults(sqs).Add(localcloud.Fault{Resource: resource(sqs, i, ".fifo"), Times: 2, Effect: c.effect})
			}
			p.run(p.spreadYAML(sqs, ".fifo", ""))
			checkDone(t, p, 10*len(strange))
			for i, c := range strange {
				if sqs {
					checkOnce(t, p.stored(resource(sqs, i, ".fifo")), 10*i, 10*i+10)
					if s := p.sqs.Stats(resource(sqs, i, ".fifo")); s.Requests != 3 {
						t.Errorf("%s: %d requests, want 3", c.name, s.Requests)
					}
					continue
				}
				if got := p.published(resource(sqs, i, "")); len(got) != 10 {
					t.Errorf("%s: %d published, want 10", c.name, len(got))
				}
				if s := p.pubsub.Stats(resource(sqs, i, "")); s.Requests != 3 {
					t.Errorf("%s: %d requests, want 3", c.name, s.Requests)
				}
			}
		})
	})
}

// When it lasts, nothing is acked and nothing dead-lettered as refused: ten good messages come back as
// transient or throttled, with the status and a short start of what was answered.
func TestAnswersThatAreNotTheAPINeverCondemnAMessage(t *testing.T) {
	bothClouds(t, func(t *testing.T, sqs bool) {
		synctest.Test(t, func(t *testing.T) {
			p := newPipedPipeline(t, newScript(spread(len(strange))))
			for i, c := range strange {
				p.faults(sqs).Add(localcloud.Fault{Resource: resource(sqs, i, ""), Effect: c.effect})
			}
			p.run(p.spreadYAML(sqs, "", "max_retries: 2"))
			if p.script.ackedCount() != 0 || len(p.script.nacked) != 10*len(strange) {
				t.Errorf("%d acked, %d nacked, want 0 and all", p.script.ackedCount(), len(p.script.nacked))
			}
			for i, c := range strange {
				for n := 10 * i; n < 10*i+10; n++ {
					got := p.script.nackOf(n)
					if !strings.HasPrefix(got, c.class+": ") || !strings.Contains(got, " "+c.status+" ") && !strings.Contains(got, " "+c.status+":") {
						t.Errorf("%s: %q, want %s and the status", c.name, got, c.class)
						break
					}
					if len(got) > 500 {
						t.Errorf("%s: the error has %d bytes", c.name, len(got))
						break
					}
				}
			}
			if got := p.requests(sqs); got != 3*len(strange) {
				t.Errorf("%d requests, want 3 to each", got)
			}
			for _, line := range p.logs.lines {
				if len(line) > 2000 {
					t.Errorf("a line of the log has %d bytes", len(line))
				}
			}
		})
	})
}

// Whatever spelling an error comes in, it means the same.
func TestDialectsOfErrorsMeanTheSame(t *testing.T) {
	dialects := []localcloud.Dialect{
		localcloud.Namespace, localcloud.Bare, localcloud.Older, localcloud.HeaderOnly, localcloud.XML, localcloud.Coral, localcloud.UpperMessage, localcloud.CodeField,
	}
	codes := []struct {
		code, class string
		sends       int
	}{
		{"QueueDoesNotExist", "config", 1},
		{"AccessDeniedException", "config", 1},
		{"BatchRequestTooLong", "permanent", 1}, // of a request of one
		{"InvalidMessageContents", "permanent", 1},
		{"RequestThrottled", "throttled", 2},
		{"ThrottlingException", "throttled", 2},
		{"BrandNewCode", "transient", 2}, // what nobody has heard of loses no message
	}
	synctest.Test(t, func(t *testing.T) {
		hooks := numbered(len(codes) * len(dialects))
		p := newPipedPipeline(t, newScript(hooks))
		requests := 0
		for i, c := range codes {
			for j, d := range dialects {
				k := i*len(dialects) + j
				hooks[k].meta["queue"] = fmt.Sprintf("q%d", k)
				p.sqs.Faults.Add(localcloud.Fault{Resource: fmt.Sprintf("q%d", k), Effect: localcloud.Effect{Error: &localcloud.ErrorReply{Code: c.code, Dialect: d}}})
				requests += c.sends
			}
		}
		p.run(p.spreadYAML(true, "", quick))
		for i, c := range codes {
			for j, d := range dialects {
				if got := p.script.nackOf(i*len(dialects) + j); !strings.HasPrefix(got, c.class+": sqs 4") {
					t.Errorf("%s in dialect %d: %q, want %s", c.code, d, got, c.class)
				}
			}
		}
		if got := p.sqs.Requests("SendMessageBatch"); got != requests {
			t.Errorf("%d requests, want %d", got, requests)
		}
	})
}

// Google's status is a word in the document, or only the HTTP status.
func TestDialectsOfGooglesErrorsMeanTheSame(t *testing.T) {
	var hooks []hook
	var want []string
	synctest.Test(t, func(t *testing.T) {
		script := newScript()
		p := newPipedPipeline(t, script)
		for _, c := range []struct {
			status int
			code   string
			class  string
		}{
			{404, "NOT_FOUND", "config"},
			{403, "PERMISSION_DENIED", "config"},
			{429, "RESOURCE_EXHAUSTED", "throttled"},
			{503, "UNAVAILABLE", "throttled"},
			{500, "INTERNAL", "transient"},
			{418, "TEAPOT", "transient"},
		} {
			for _, document := range []string{
				fmt.Sprintf(`{"error":{"code":%d,"status":%q,"message":"m"}}`, c.status, c.code),
				fmt.Sprintf(`{"error":{"code":%d,"message":"m"}}`, c.status),
				fmt.Sprintf(`[{"error":{"code":%d,"status":%q,"message":"m"}}]`, c.status, c.code),
			} {
				k := len(hooks)
				h := numbered(k + 1)[k]
				h.meta["queue"] = fmt.Sprintf("q%d", k)
				hooks, want = append(hooks, h), append(want, fmt.Sprintf("%s: pubsub %d", c.class, c.status))
				p.pubsub.Faults.Add(localcloud.Fault{Resource: resource(false, k, ""), Effect: localcloud.Effect{Reply: &localcloud.Reply{
					Status: c.status, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(document),
				}}})
			}
		}
		script.transactions = [][]hook{hooks}
		p.run(p.spreadYAML(false, "", quick))
		for k, want := range want {
			if got := p.script.nackOf(k); !strings.HasPrefix(got, want) {
				t.Errorf("hook %d: %q, want %s", k, got, want)
			}
		}
	})
}

// Two bad ones of a thousand, at the ends, and a server that hiccups in the middle of the search for
// them: the others are stored once.
func TestFirstAndLastRefusedOfAThousand(t *testing.T) {
	for _, hiccup := range []bool{false, true} {
		t.Run(fmt.Sprintf("hiccup=%v", hiccup), func(t *testing.T) {
			const n = 1000
			p := newPipeline(t, newScript(numbered(n)))
			must(t, p.pubsub.CreateTopic("hooks", localpubsub.TopicOptions{Reject: func(m *localpubsub.StoredMessage) bool {
				return slices.Contains([]string{"id-0", "id-999"}, m.Attributes["ankusa_id"])
			}}))
			if hiccup {
				for _, nth := range []int{4, 9, 14, 19} {
					p.pubsub.Faults.Add(localcloud.Fault{Action: "Publish", Nth: nth, Effect: localcloud.Effect{Error: &localcloud.ErrorReply{Status: 503, Code: "UNAVAILABLE"}}})
				}
			}
			p.run(fallback(p.pubsubYAML("hooks", "backoff: { initial_interval: 1ms, max_interval: 1ms }")))
			checkOnce(t, p.published("hooks"), 0, n, 0, 999)
			if s := p.pubsub.Stats("hooks"); s.Messages != n-2 {
				t.Errorf("%d messages stored, want %d: an accepted half was sent again", s.Messages, n-2)
			} else if !hiccup && s.Requests > 1+2*20 {
				t.Errorf("%d requests, want at most 1 and 20 for each of the two", s.Requests)
			}
			if slices.Sort(p.sink.got); strings.Join(p.sink.got, " ") != "0 999" {
				t.Errorf("the fallback got %q, want the two", p.sink.got)
			}
			for _, e := range p.sink.errs {
				if !strings.HasPrefix(e, "permanent: pubsub 400 INVALID_ARGUMENT") {
					t.Errorf("fallback_error %q", e)
				}
			}
		})
	}
}
