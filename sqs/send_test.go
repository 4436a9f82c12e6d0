package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/sqs"
	"github.com/ankusa-connect/ankusa-connect/wire"
	"github.com/aws/aws-sdk-go-v2/aws"
)

// outcomes names each result: "ok" or "class code".
func outcomes(results []error) []string {
	var all []string
	for _, err := range results {
		e := classify.Of(err)
		if e == nil {
			all = append(all, "ok")
			continue
		}
		all = append(all, strings.TrimSpace(e.Class.String()+" "+e.Code))
	}
	return all
}

func wantOutcomes(t *testing.T, results []error, want ...string) {
	t.Helper()
	if got := outcomes(results); !slices.Equal(got, want) {
		t.Errorf("results:\n got %q\nwant %q\n(%v)", got, want, results)
	}
}

func repeat(s string, n int) []string { return slices.Repeat([]string{s}, n) }

func TestSendReadsEntryByEntry(t *testing.T) {
	ten := entriesOf("a b c d e f g h i j")
	for _, tc := range []struct {
		name  string
		reply func(g *got) string // the JSON of a 200
		want  []string
	}{
		{"all stored", func(g *got) string { return batchAnswer(g, nil).body }, repeat("ok", 10)},
		{"each failure is its own entry's", func(g *got) string {
			return batchAnswer(g, map[string]string{"b": "InvalidMessageContents", "d": "AccessDenied", "f": "ThrottlingException", "h": "InternalError", "j": "Unheard.Of"}).body
		}, []string{"ok", "permanent InvalidMessageContents", "ok", "config AccessDenied", "ok", "throttled ThrottlingException", "ok", "transient InternalError", "ok", "transient Unheard.Of"}},
		{"one absent", func(g *got) string {
			g.Entries = g.Entries[:9]
			return batchAnswer(g, map[string]string{"a": "InternalError"}).body
		},
			append(append([]string{"transient InternalError"}, repeat("ok", 8)...), "transient missing_entry")},
		{"{}", func(*got) string { return "{}" }, repeat("transient missing_entry", 10)},
		{"repeated in Failed", func(g *got) string {
			return strings.Replace(batchAnswer(g, map[string]string{"c": "InternalError"}).body, `"Failed":[`, `"Failed":[{"Id":"2","Code":"InvalidMessageContents"},`, 1)
		}, append([]string{"ok", "ok", "permanent InvalidMessageContents"}, repeat("ok", 7)...)},
		{"stored and failed", func(g *got) string {
			return strings.Replace(batchAnswer(g, nil).body, `"Failed":[`, `"Failed":[{"Id":"0","Code":"InvalidMessageContents"}`, 1)
		}, append([]string{"transient unexpected_reply"}, repeat("ok", 9)...)},
		{"unknown ids", func(g *got) string {
			s := strings.Replace(batchAnswer(g, nil).body, `"Failed":[`, `"Failed":[{"Id":"10"},{"Id":""},{"Id":"-1"},{"Id":"00"},{"Id":"x"}`, 1)
			return strings.Replace(s, `"Successful":[`, `"Successful":[{"Id":":","MD5OfMessageBody":"x"},`, 1)
		}, repeat("ok", 10)},
		{"wrong MD5", func(g *got) string { return strings.Replace(batchAnswer(g, nil).body, md5Hex("b"), md5Hex("x"), 1) },
			append([]string{"ok", "transient md5_mismatch"}, repeat("ok", 8)...)},
		{"wrong MD5, then right", func(g *got) string {
			return strings.Replace(batchAnswer(g, nil).body, `[`, `[{"Id":"1","MD5OfMessageBody":"`+md5Hex("x")+`"},`, 1)
		}, append([]string{"ok", "transient md5_mismatch"}, repeat("ok", 8)...)},
		{"MD5 in capitals", func(g *got) string {
			return strings.Replace(batchAnswer(g, nil).body, md5Hex("b"), strings.ToUpper(md5Hex("b")), 1)
		}, repeat("ok", 10)},
		{"no MD5", func(g *got) string { return strings.Replace(batchAnswer(g, nil).body, md5Hex("b"), "", 1) },
			append([]string{"ok", "transient unexpected_reply"}, repeat("ok", 8)...)},
		{"null", func(*got) string { return "null" }, repeat("transient unexpected_reply", 10)},
		{"HTML", func(*got) string { return "<html>captive portal" }, repeat("transient unexpected_reply", 10)},
		{"an array", func(*got) string { return "[]" }, repeat("transient unexpected_reply", 10)},
		{"cut in half", func(g *got) string { b := batchAnswer(g, nil).body; return b[:len(b)/2] }, repeat("transient unexpected_reply", 10)},
		{"a type that isn't one", func(*got) string { return `{"Successful":[{"Id":0}]}` }, repeat("transient unexpected_reply", 10)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFake(t, func(_ int, g *got) answer { return answer{body: tc.reply(g)} })
			results := f.client(t, sqs.Options{}).Send(t.Context(), standard, ten)
			wantOutcomes(t, results, tc.want...)
			if n := len(f.requests); n != 1 {
				t.Errorf("requests = %d, want 1", n)
			}
		})
	}
}

func TestMD5OfAttributesIsChecked(t *testing.T) {
	// The digest of ("content_type", "String", "application/json") and ("ankusa_id", "String", "01a0"),
	// sorted by name, laid out by hand.
	right := md5Hex("\x00\x00\x00\x09ankusa_id\x00\x00\x00\x06String\x01\x00\x00\x00\x0401a0" +
		"\x00\x00\x00\x0ccontent_type\x00\x00\x00\x06String\x01\x00\x00\x00\x10application/json")
	entry := sqs.Entry{Body: []byte("a"), Attributes: []sqs.Attribute{{"content_type", "application/json"}, {"ankusa_id", "01a0"}}}
	for sum, want := range map[string]string{right: "ok", md5Hex("else"): "transient md5_mismatch"} {
		f := newFake(t, func(_ int, g *got) answer {
			return answer{body: strings.Replace(batchAnswer(g, nil).body, `"MessageId"`, `"MD5OfMessageAttributes":"`+sum+`","MessageId"`, 1)}
		})
		wantOutcomes(t, f.client(t, sqs.Options{}).Send(t.Context(), standard, []sqs.Entry{entry}), want)
	}
}

func TestRequestFailureIsEveryEntrysFailure(t *testing.T) {
	for _, tc := range []struct {
		name string
		a    answer
		want string
	}{
		{"namespace", answer{status: 400, body: `{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"x"}`}, "config QueueDoesNotExist"},
		{"bare", answer{status: 400, body: `{"__type":"QueueDoesNotExist","Message":"x"}`}, "config QueueDoesNotExist"},
		{"older name", answer{status: 400, body: `{"__type":"AWS.SimpleQueueService.NonExistentQueue"}`}, "config AWS.SimpleQueueService.NonExistentQueue"},
		{"header", answer{status: 400, header: http.Header{"X-Amzn-Query-Error": {"AWS.SimpleQueueService.NonExistentQueue;Sender"}}, body: "{}"}, "config AWS.SimpleQueueService.NonExistentQueue"},
		{"XML", answer{status: 403, body: `<?xml version="1.0"?><ErrorResponse><Error><Code>AccessDenied</Code><Message>x</Message></Error></ErrorResponse>`}, "config AccessDenied"},
		{"access denied", errorAnswer(403, "AccessDeniedException"), "config AccessDeniedException"},
		{"throttled as 403", errorAnswer(403, "RequestThrottled"), "throttled RequestThrottled"},
		{"throttled as 400", errorAnswer(400, "ThrottlingException"), "throttled ThrottlingException"},
		{"KMS throttled", errorAnswer(400, "KMS.ThrottlingException"), "throttled KMS.ThrottlingException"},
		{"429 without a word", answer{status: 429}, "throttled unexpected_reply"},
		{"503 without a word", answer{status: 503}, "throttled unexpected_reply"},
		{"502 HTML", answer{status: 502, body: "<html>bad gateway"}, "transient unexpected_reply"},
		{"400 HTML", answer{status: 400, body: "<html><code>InvalidParameterValue</code>"}, "transient unexpected_reply"},
		{"404 JSON of something else", answer{status: 404, body: `{"message":"no route"}`}, "transient unexpected_reply"},
		{"500", errorAnswer(500, "InternalFailure"), "transient InternalFailure"},
		{"unknown 4xx", errorAnswer(418, "Teapot"), "transient Teapot"},
		{"204", answer{status: 204}, "transient unexpected_reply"},
		{"redirect", answer{status: 307, header: http.Header{"Location": {"https://evil.test/x"}}}, "transient unexpected_reply"},
		{"code that is none", answer{status: 400, body: `{"__type":"a b\n"}`}, "transient unexpected_reply"},
		{"our bug", errorAnswer(400, "BatchEntryIdsNotDistinct"), "transient BatchEntryIdsNotDistinct"},
		{"lost", answer{drop: true}, "transient no_reply"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFake(t, func(int, *got) answer { return tc.a })
			results := f.client(t, sqs.Options{}).Send(t.Context(), standard, entriesOf("a b c"))
			wantOutcomes(t, results, repeat(tc.want, 3)...)
			if n := len(f.sentBodies()); n != 1 {
				t.Errorf("requests = %d, want 1", n)
			}
		})
	}
}

func TestErrorsHoldNoBody(t *testing.T) {
	f := newFake(t, func(_ int, g *got) answer { return answer{status: 400, body: strings.Repeat("é\x00 ", 4000)} })
	err := f.client(t, sqs.Options{}).Send(t.Context(), standard, entriesOf("a"))[0]
	if s := err.Error(); len(s) > 300 || strings.ContainsRune(s, 0) || !strings.HasPrefix(s, "transient: sqs 400 unexpected_reply: ") {
		t.Errorf("error = %q", s)
	}
}

func TestRetryAfterIsPassedOn(t *testing.T) {
	f := newFake(t, func(int, *got) answer {
		a := errorAnswer(503, "ServiceUnavailable")
		a.header = http.Header{"Retry-After": {"7"}}
		return a
	})
	for _, err := range f.client(t, sqs.Options{}).Send(t.Context(), standard, entriesOf("a b")) {
		if e := classify.Of(err); e == nil || e.RetryAfter != 7*time.Second || e.Class != classify.Throttled {
			t.Errorf("error = %+v, want a throttled one after 7s", e)
		}
	}
}

// refuse answers code to every request that holds one of the bodies.
func refuse(code string, bodies ...string) func(int, *got) answer {
	return func(_ int, g *got) answer {
		for b := range strings.FieldsSeq(g.bodies()) {
			if slices.Contains(bodies, b) {
				return errorAnswer(400, code)
			}
		}
		return answer{}
	}
}

func TestPermanentCodeOfARequestFindsItsCulprit(t *testing.T) {
	for _, tc := range []struct {
		bad  []string
		want []string
		n    int
	}{
		{[]string{"e"}, []string{"ok", "ok", "ok", "ok", "permanent InvalidMessageContents", "ok", "ok", "ok", "ok", "ok"}, 9},
		{[]string{"a", "j"}, append(append([]string{"permanent InvalidMessageContents"}, repeat("ok", 8)...), "permanent InvalidMessageContents"), 15},
	} {
		f := newFake(t, refuse("InvalidMessageContents", tc.bad...))
		var splits, requests int
		c := f.client(t, sqs.Options{Observe: func(o sqs.Observation) {
			requests++
			if o.Split {
				splits++
			}
		}})
		wantOutcomes(t, c.Send(t.Context(), standard, entriesOf("a b c d e f g h i j")), tc.want...)
		if len(f.stored) != 10-len(tc.bad) {
			t.Errorf("stored %q, want each good one once", f.stored)
		}
		if len(f.requests) > tc.n || requests != len(f.requests) || splits == 0 {
			t.Errorf("%d requests (%q), observed %d with %d splits, want at most %d", len(f.requests), f.sentBodies(), requests, splits, tc.n)
		}
	}
}

func TestBatchTooLongIsSplit(t *testing.T) {
	const limit = 262_144
	f := newFake(t, func(_ int, g *got) answer {
		n := 0
		for _, e := range g.Entries {
			n += len(e.MessageBody)
		}
		if n > limit {
			return errorAnswer(400, "BatchRequestTooLong")
		}
		return answer{}
	})
	entries := make([]sqs.Entry, 10)
	for i := range entries {
		entries[i].Body = []byte(strings.Repeat(string(rune('a'+i)), 30_000))
	}
	c := f.client(t, sqs.Options{})
	wantOutcomes(t, c.Send(t.Context(), standard, entries), repeat("ok", 10)...)
	if len(f.requests) != 3 {
		t.Errorf("requests = %d, want 3", len(f.requests))
	}
	entries[3].Body = []byte(strings.Repeat("x", limit+1))
	want := repeat("ok", 10)
	want[3] = "permanent BatchRequestTooLong"
	results := c.Send(t.Context(), standard, entries)
	wantOutcomes(t, results, want...)
	if !strings.Contains(results[3].Error(), "max_message_bytes") {
		t.Errorf("error = %v, want the remedy in it", results[3])
	}
}

func TestFailureInTheMiddleOfASplitEndsIt(t *testing.T) {
	for _, code := range []string{"InternalFailure", "ThrottlingException", "AccessDenied"} {
		class := classify.SQS(400, code, "").Class.String() + " " + code
		// The request is refused whole; its first half is stored, the third quarter fails.
		f := newFake(t, func(n int, g *got) answer {
			switch n {
			case 1, 3:
				return errorAnswer(400, "InvalidMessageContents")
			case 4:
				return errorAnswer(400, code)
			}
			return answer{}
		})
		results := f.client(t, sqs.Options{}).Send(t.Context(), standard, entriesOf("a b c d e f g h"))
		wantOutcomes(t, results, append(repeat("ok", 4), repeat(class, 4)...)...)
		if got, want := f.sentBodies(), []string{"a b c d e f g h", "a b c d", "e f g h", "e f"}; !slices.Equal(got, want) {
			t.Errorf("requests %q, want %q: the rest is not tried", got, want)
		}
		if !strings.Contains(results[7].Error(), "not sent") || strings.Contains(results[4].Error(), "not sent") {
			t.Errorf("errors %v and %v should tell what was sent", results[4], results[7])
		}
	}
}

func TestGroupIsHeldBehindItsFailure(t *testing.T) {
	for _, tc := range []struct {
		code       string
		wantB      string
		wantLaterB string
	}{
		{"InternalError", "transient InternalError", "transient held"},
		{"ThrottlingException", "throttled ThrottlingException", "transient held"},
		{"AccessDenied", "config AccessDenied", "transient held"},
		{"InvalidMessageContents", "permanent InvalidMessageContents", "ok"}, // frees the group
	} {
		t.Run(tc.code, func(t *testing.T) {
			f := newFake(t, func(n int, g *got) answer {
				if n == 1 {
					return errorAnswer(400, "BatchRequestTooLong")
				}
				return batchAnswer(g, map[string]string{"B:2": tc.code})
			})
			results := f.client(t, sqs.Options{}).Send(t.Context(), fifo, entriesOf("A:1 B:2 A:3 B:4 A:5 C:6"))
			wantOutcomes(t, results, "ok", tc.wantB, "ok", tc.wantLaterB, "ok", "ok")
			sent := f.sentBodies()[2]
			if held := tc.wantLaterB != "ok"; strings.Contains(sent, "B:4") == held {
				t.Errorf("second half = %q", sent)
			}
			if f.sentBodies()[1] != "A:1 B:2 A:3" {
				t.Errorf("the first half did not go first: %q", f.sentBodies())
			}
		})
	}
}

// A group id on a standard queue is a label and holds nothing.
func TestStandardQueueHoldsNoGroup(t *testing.T) {
	f := newFake(t, func(n int, g *got) answer {
		if n == 1 {
			return errorAnswer(400, "BatchRequestTooLong")
		}
		return batchAnswer(g, map[string]string{"B:2": "InternalError"})
	})
	results := f.client(t, sqs.Options{}).Send(t.Context(), standard, entriesOf("B:1 B:2 B:3 B:4"))
	wantOutcomes(t, results, "ok", "transient InternalError", "ok", "ok")
	for _, e := range f.requests[0].Entries {
		if e.MessageGroupID != "B" || e.MessageDeduplicationID != "" {
			t.Errorf("entry = %+v, want the group and no deduplication id", e)
		}
	}
}

func TestFIFOSendsNoDelayAndNeedsItsIDs(t *testing.T) {
	f := newFake(t, nil)
	entries := entriesOf("A:1 2 A:3 A:4")
	entries[0].DelaySeconds = aws.Int32(5)
	entries[2].DeduplicationID = ""
	results := f.client(t, sqs.Options{}).Send(t.Context(), fifo, entries)
	wantOutcomes(t, results, "ok", "permanent invalid_field", "permanent invalid_field", "ok")
	if e := f.requests[0].Entries; len(e) != 2 || e[0].DelaySeconds != nil || e[1].ID != "1" || e[1].MessageBody != "A:4" || e[0].MessageDeduplicationID != "d-A:1" {
		t.Errorf("entries = %+v", e)
	}
	if entries[0].DelaySeconds == nil {
		t.Error("Send changed an entry")
	}
	wantOutcomes(t, f.client(t, sqs.Options{}).Send(t.Context(), standard, entries[:1]), "ok")
	if e := f.requests[1].Entries; e[0].DelaySeconds == nil || *e[0].DelaySeconds != 5 {
		t.Errorf("entries = %+v, want the delay on a standard queue", e)
	}
}

func TestSingleSendsEachByItself(t *testing.T) {
	f := newFake(t, func(_ int, g *got) answer {
		switch g.bodies() {
		case "b":
			return errorAnswer(400, "InvalidMessageContents")
		case "c":
			return answer{body: `{"MD5OfMessageBody":"00"}`}
		case "d":
			return answer{body: `{}`}
		}
		return answer{}
	})
	results := f.client(t, sqs.Options{Single: true}).Send(t.Context(), standard, entriesOf("a b c d e"))
	wantOutcomes(t, results, "ok", "permanent InvalidMessageContents", "transient md5_mismatch", "transient unexpected_reply", "ok")
	for _, g := range f.requests {
		if g.target != "AmazonSQS.SendMessage" || g.QueueURL != standard || len(g.Entries) != 0 {
			t.Errorf("request = %+v", g)
		}
	}
}

func TestTooManyEntriesAreNotSent(t *testing.T) {
	f := newFake(t, nil)
	var logged string
	c := f.client(t, sqs.Options{Logf: func(format string, args ...any) { logged += fmt.Sprintf(format, args...) }})
	wantOutcomes(t, c.Send(t.Context(), standard, entriesOf("a b c d e f g h i j k")), repeat("transient TooManyEntries", 11)...)
	if len(f.requests) != 0 || !strings.Contains(logged, "BUG") {
		t.Errorf("%d requests, logged %q", len(f.requests), logged)
	}
	if got := c.Send(t.Context(), standard, nil); len(got) != 0 || len(f.requests) != 0 {
		t.Errorf("Send of nothing = %v after %d requests", got, len(f.requests))
	}
}

func TestQueueThatAMessageChoseIsChecked(t *testing.T) {
	f := newFake(t, nil)
	w := wire.New(wire.Options{Service: "sqs"})
	t.Cleanup(w.Close)
	c, err := sqs.New(sqs.Options{Credentials: goodKeys(), Wire: w, DynamicQueues: true, Region: "eu-west-1", Getenv: env()})
	if err != nil {
		t.Fatal(err)
	}
	wantOutcomes(t, c.Send(t.Context(), f.url+"/1/q", entriesOf("a")), "permanent invalid_field")
	if len(f.requests) != 0 {
		t.Error("the message's own choice got the hook")
	}
}

func TestEndedContextSendsNothing(t *testing.T) {
	f := newFake(t, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("stopped")
	cancel(cause)
	results := f.client(t, sqs.Options{}).Send(ctx, standard, entriesOf("a b"))
	wantOutcomes(t, results, "transient not_sent", "transient not_sent")
	if !errors.Is(results[0], cause) || len(f.requests) != 0 {
		t.Errorf("results = %v after %d requests", results, len(f.requests))
	}
}

func TestExpiredTokenIsRefreshedOnce(t *testing.T) {
	for _, tc := range []struct {
		name   string
		refuse int // requests
		want   string
		n, inv int
	}{{"once", 1, "ok", 2, 1}, {"always", 99, "transient ExpiredToken", 2, 1}} {
		t.Run(tc.name, func(t *testing.T) {
			k := goodKeys()
			k.list = append([]aws.Credentials{{AccessKeyID: "OLD", SecretAccessKey: "s", SessionToken: "t"}}, k.list...)
			f := newFake(t, func(n int, _ *got) answer {
				if n <= tc.refuse {
					return errorAnswer(403, "ExpiredToken")
				}
				return answer{}
			})
			f.check.id = "" // two sets of keys
			wantOutcomes(t, f.client(t, sqs.Options{Credentials: k}).Send(t.Context(), standard, entriesOf("a")), tc.want)
			if len(f.requests) != tc.n || k.invalidated != tc.inv {
				t.Errorf("%d requests, %d invalidations; want %d, %d", len(f.requests), k.invalidated, tc.n, tc.inv)
			}
			if a := f.requests[1].header.Get("Authorization"); !strings.Contains(a, "Credential=AKID/") {
				t.Errorf("the resend was signed with %q", a)
			}
		})
	}
}

// Keys that were replaced in their file are picked up; keys that are simply wrong aren't looked up for
// each message.
func TestRefusedKeyIsLookedUpAgainSparingly(t *testing.T) {
	now := time.Now()
	k := goodKeys()
	k.list = append([]aws.Credentials{{AccessKeyID: "OLD", SecretAccessKey: "s"}}, k.list...)
	f := newFake(t, func(n int, g *got) answer {
		if n == 1 || n > 2 {
			return errorAnswer(403, "InvalidClientTokenId")
		}
		return answer{}
	})
	f.check.id = ""
	c := f.client(t, sqs.Options{Credentials: k, Now: func() time.Time { return now }})
	wantOutcomes(t, c.Send(t.Context(), standard, entriesOf("a")), "ok")
	for range 3 {
		wantOutcomes(t, c.Send(t.Context(), standard, entriesOf("a")), "config InvalidClientTokenId")
	}
	if k.invalidated != 1 {
		t.Errorf("invalidations = %d, want 1 within %v", k.invalidated, 5*time.Second)
	}
	now = now.Add(6 * time.Second)
	wantOutcomes(t, c.Send(t.Context(), standard, entriesOf("a")), "config InvalidClientTokenId")
	if k.invalidated != 2 || len(f.requests) != 6 {
		t.Errorf("invalidations = %d, requests = %d; want 2, and no resend with the same keys", k.invalidated, len(f.requests))
	}
}

func TestNoCredentialsSendsNothing(t *testing.T) {
	f := newFake(t, nil)
	k := &keys{err: classify.Transientf("sqs", sqs.CodeNoCredentials, "none")}
	wantOutcomes(t, f.client(t, sqs.Options{Credentials: k}).Send(t.Context(), standard, entriesOf("a b")), repeat("transient no_credentials", 2)...)
	if len(f.requests) != 0 {
		t.Errorf("requests = %d", len(f.requests))
	}
}

func TestWrongClockIsLearntAndKept(t *testing.T) {
	for _, code := range []string{"InvalidSignatureException", "SignatureDoesNotMatch", "RequestExpired", "RequestTimeTooSkewed"} {
		t.Run(code, func(t *testing.T) {
			server := time.Now().Add(20 * time.Minute)
			f := newFake(t, nil)
			f.now = func() time.Time { return server }
			f.check.id = ""
			f.script = func(_ int, g *got) answer {
				at, _ := time.Parse("20060102T150405Z", g.date)
				if server.Sub(at).Abs() > 5*time.Minute {
					a := errorAnswer(403, code)
					a.header = http.Header{"Date": {server.UTC().Format(http.TimeFormat)}}
					return a
				}
				return answer{}
			}
			k := goodKeys()
			c := f.client(t, sqs.Options{Credentials: k})
			wantOutcomes(t, c.Send(t.Context(), standard, entriesOf("a")), "ok")
			wantOutcomes(t, c.Send(t.Context(), standard, entriesOf("b")), "ok")
			if got := f.sentBodies(); !slices.Equal(got, []string{"a", "a", "b"}) {
				t.Errorf("requests %q: the offset was not kept", got)
			}
			if f.requests[0].date == f.requests[1].date {
				t.Error("the resend has the date of the first try")
			}
			if k.invalidated != 0 {
				t.Error("a wrong clock cost the credentials")
			}
		})
	}
}

func TestSignatureRefusedWithoutSkewIsConfig(t *testing.T) {
	f := newFake(t, func(int, *got) answer { return errorAnswer(403, "SignatureDoesNotMatch") })
	wantOutcomes(t, f.client(t, sqs.Options{}).Send(t.Context(), standard, entriesOf("a b")), repeat("config SignatureDoesNotMatch", 2)...)
}

// A service whose Date is never within reach must not be asked for ever.
func TestClockThatCannotBeLearntIsTransientAfterOneResend(t *testing.T) {
	n := 0
	f := newFake(t, func(int, *got) answer {
		n++
		a := errorAnswer(403, "RequestTimeTooSkewed")
		a.header = http.Header{"Date": {time.Now().Add(time.Duration(n) * time.Hour).UTC().Format(http.TimeFormat)}}
		return a
	})
	f.check.id = ""
	wantOutcomes(t, f.client(t, sqs.Options{}).Send(t.Context(), standard, entriesOf("a")), "transient RequestTimeTooSkewed")
	if n != 2 {
		t.Errorf("requests = %d, want 2", n)
	}
}

func TestEndpointsAndHostsAreSignedAsSent(t *testing.T) {
	for _, tc := range []struct{ endpoint, host, uri string }{
		{"http://sqs.eu-west-1.amazonaws.com", "sqs.eu-west-1.amazonaws.com", "/"},
		{"http://sqs.eu-west-1.amazonaws.com:80/", "sqs.eu-west-1.amazonaws.com", "/"},
		{"http://gate.test:8443", "gate.test:8443", "/"},
		{"http://gate.test:443/", "gate.test:443", "/"},
		{"http://gate.test/aws/sqs", "gate.test", "/aws/sqs/"},
		{"http://gate.test/a%20b/ü+c=d", "gate.test", "/a%20b/%C3%BC+c=d/"},
		{"http://[::1]:4566", "[::1]:4566", "/"},
	} {
		t.Run(tc.endpoint, func(t *testing.T) {
			f := newFake(t, nil) // it verifies the signature
			wantOutcomes(t, f.client(t, sqs.Options{Endpoint: tc.endpoint}).Send(t.Context(), standard, entriesOf("a")), "ok")
			if g := f.requests[0]; g.host != tc.host || g.uri != tc.uri || g.QueueURL != standard {
				t.Errorf("host %q, uri %q, queue %q; want %q, %q, %q", g.host, g.uri, g.QueueURL, tc.host, tc.uri, standard)
			}
		})
	}
}

func TestConcurrentSendsShareNothing(t *testing.T) {
	f := newFake(t, nil)
	c := f.client(t, sqs.Options{})
	done := make(chan []error)
	for i := range 16 {
		go func() {
			body := strings.Repeat(string(rune('a'+i)), 5000)
			e := []sqs.Entry{{Body: []byte(body)}, {Body: []byte(body)}}
			r := c.Send(t.Context(), standard, e)
			clear(e[0].Body)
			done <- r
		}()
	}
	for range 16 {
		wantOutcomes(t, <-done, "ok", "ok") // the MD5 of another's body would not do
	}
}
