package localsqs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

// exchangeWith runs one send of "x" under an effect, in memory, and returns reply, body and errors.
func exchangeWith(t *testing.T, e localcloud.Effect) (s *SQS, resp *http.Response, body string, err, bodyErr error) {
	t.Helper()
	s = New(Options{AnySigner: true, AutoCreate: true})
	s.Faults.Add(localcloud.Fault{Action: "SendMessage", Nth: 1, Effect: e})
	ln := localcloud.NewPipeListener()
	server := localcloud.Serve(ln, s)
	defer server.Close()
	transport := &http.Transport{DialContext: ln.DialContext}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, server.URL(), strings.NewReader(doc(t, m{"QueueUrl": standard, "MessageBody": "x"})))
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("X-Amz-Target", "AmazonSQS.SendMessage")
	resp, err = transport.RoundTrip(r)
	if err != nil {
		return s, nil, "", err, nil
	}
	defer resp.Body.Close()
	raw, bodyErr := io.ReadAll(io.LimitReader(resp.Body, 3<<20))
	return s, resp, string(raw), nil, bodyErr
}

func TestScriptedReplies(t *testing.T) {
	for _, c := range []struct {
		name   string
		effect localcloud.Effect
		stored int
		check  func(resp *http.Response, body string, err, bodyErr error) bool
	}{
		{"an error", localcloud.Effect{Error: &localcloud.ErrorReply{Code: "AccessDeniedException"}}, 0, func(r *http.Response, body string, _, _ error) bool {
			return r.StatusCode == 403 && strings.Contains(body, "AccessDeniedException")
		}},
		{"an error after storing", localcloud.Effect{Stored: true, Error: &localcloud.ErrorReply{Code: "InternalFailure"}}, 1, func(r *http.Response, _ string, _, _ error) bool {
			return r.StatusCode == 500
		}},
		{"XML", localcloud.Effect{Error: &localcloud.ErrorReply{Code: "AccessDeniedException", Message: "a<b", Dialect: localcloud.XML}}, 0, func(r *http.Response, body string, _, _ error) bool {
			return strings.Contains(body, "<Code>AccessDenied</Code><Message>a&lt;b</Message>")
		}},
		{"429 with Retry-After", localcloud.Effect{Error: &localcloud.ErrorReply{Status: 429, Code: "ThrottlingException"}, Header: http.Header{"retry-after": {"7"}}}, 0, func(r *http.Response, _ string, _, _ error) bool {
			return r.StatusCode == 429 && r.Header.Get("Retry-After") == "7"
		}},
		{"HTML", localcloud.Effect{Reply: localcloud.HTML(502)}, 0, func(r *http.Response, body string, _, _ error) bool {
			return r.StatusCode == 502 && strings.Contains(body, "<html>")
		}},
		{"a redirect", localcloud.Effect{Reply: localcloud.Redirect("http://elsewhere.test/")}, 0, func(r *http.Response, _ string, _, _ error) bool {
			return r.StatusCode == 307 && r.Header.Get("Location") != ""
		}},
		{"half a document", localcloud.Effect{Truncate: true}, 1, func(r *http.Response, body string, _, bodyErr error) bool {
			return r.StatusCode == 200 && bodyErr == nil && strings.HasPrefix(body, "{") && !strings.HasSuffix(body, "}")
		}},
		{"a cut within the reply", localcloud.Effect{CutReply: true}, 1, func(r *http.Response, body string, _, bodyErr error) bool {
			return r.StatusCode == 200 && bodyErr != nil && body != ""
		}},
		{"a cut before", localcloud.Effect{Cut: true}, 0, func(_ *http.Response, _ string, err, _ error) bool { return err != nil }},
		{"a reset", localcloud.Effect{Reset: true}, 0, func(_ *http.Response, _ string, err, _ error) bool { return err != nil }},
		{"a lost reply", localcloud.Effect{Stored: true, Cut: true}, 1, func(_ *http.Response, _ string, err, _ error) bool { return err != nil }},
		{"an endless body", localcloud.Effect{Endless: true}, 0, func(r *http.Response, body string, _, _ error) bool {
			return r.StatusCode == 200 && len(body) == 3<<20
		}},
		{"a stall", localcloud.Effect{Stall: true}, 0, func(_ *http.Response, _ string, err, _ error) bool {
			return errors.Is(err, context.DeadlineExceeded)
		}},
		{"a wait", localcloud.Effect{Wait: 50 * time.Second}, 1, func(r *http.Response, _ string, _, _ error) bool { return r.StatusCode == 200 }},
		{"a wait too long", localcloud.Effect{Wait: time.Hour}, 0, func(_ *http.Response, _ string, err, _ error) bool { return err != nil }},
		{"a trickle", localcloud.Effect{Trickle: 50 * time.Second}, 1, func(r *http.Response, body string, _, bodyErr error) bool { return bodyErr == nil && body != "" }},
		{"a clock ahead", localcloud.Effect{Skew: 20 * time.Minute}, 1, func(r *http.Response, _ string, _, _ error) bool {
			date, err := http.ParseTime(r.Header.Get("Date"))
			return err == nil && time.Until(date) > 18*time.Minute
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, resp, body, err, bodyErr := exchangeWith(t, c.effect)
				if err != nil && resp == nil {
					resp = &http.Response{}
				}
				if !c.check(resp, body, err, bodyErr) {
					t.Errorf("got %d %.200q, %v, %v", resp.StatusCode, body, err, bodyErr)
				}
				if n := len(s.Messages("q")); n != c.stored {
					t.Errorf("%d messages stored, want %d", n, c.stored)
				}
				if n := len(s.Faults.Fired()); n != 1 {
					t.Errorf("%d faults fired, want 1", n)
				}
			})
		})
	}
}

// A skewed clock refuses a sound signature, as the service would, until the client has learnt.
func TestSkewRefusesSignatures(t *testing.T) {
	s := New(Options{})
	base := serve(t, s)
	s.Faults.Add(localcloud.Fault{Action: "ListQueues", Nth: 1, Effect: localcloud.Effect{Skew: 20 * time.Minute}})
	client := sdk(t, base)
	if _, err := client.ListQueues(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "Signature expired") {
		t.Errorf("got %v, want an expired signature", err)
	}
}

func TestScriptedEntries(t *testing.T) {
	type result = map[string][]string // list → ids
	for _, c := range []struct {
		name   string
		fault  localcloud.EntryFault
		stored int
		want   result
	}{
		{"refuse", localcloud.EntryFault{Code: "ThrottlingException"}, 2, result{"Successful": {"b", "c"}, "Failed": {"a"}}},
		{"refuse by predicate", localcloud.EntryFault{If: func(e *localcloud.Entry) bool { return string(e.Body) == "B" || e.Group == "g" }}, 1, result{"Successful": {"a"}, "Failed": {"b", "c"}}},
		{"drop", localcloud.EntryFault{Index: 1, Do: localcloud.Drop}, 3, result{"Successful": {"a", "c"}}},
		{"drop unstored", localcloud.EntryFault{Index: 1, Do: localcloud.DropUnstored}, 2, result{"Successful": {"a", "c"}}},
		{"twice", localcloud.EntryFault{Index: 1, Do: localcloud.Twice}, 3, result{"Successful": {"a", "b", "b", "c"}}},
		{"failed twice", localcloud.EntryFault{Index: 1, Do: localcloud.FailTwice}, 2, result{"Successful": {"a", "c"}, "Failed": {"b", "b"}}},
		{"both", localcloud.EntryFault{Index: 1, Do: localcloud.Both}, 3, result{"Successful": {"a", "b", "c"}, "Failed": {"b"}}},
		{"unknown", localcloud.EntryFault{Index: 1, Do: localcloud.Unknown}, 3, result{"Successful": {"a", strangerID, "c"}}},
		{"one more", localcloud.EntryFault{Index: 1, Do: localcloud.ExtraUnknown}, 3, result{"Successful": {"a", "b", strangerID, "c"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := New(Options{AnySigner: true, AutoCreate: true})
			s.Faults.Add(localcloud.Fault{Effect: localcloud.Effect{Entries: []localcloud.EntryFault{c.fault}}})
			a := raw(t, s, "SendMessageBatch", doc(t, m{"QueueUrl": standard, "Entries": []m{
				{"Id": "a", "MessageBody": "A"}, {"Id": "b", "MessageBody": "B"}, {"Id": "c", "MessageBody": "C", "MessageGroupId": "g"},
			}}))
			got := result{}
			for _, list := range []string{"Successful", "Failed"} {
				entries, _ := a.fields[list].([]any)
				for _, e := range entries {
					got[list] = append(got[list], e.(m)["Id"].(string))
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("listed %v, want %v", got, c.want)
			}
			if n := len(s.Messages("q")); n != c.stored {
				t.Errorf("%d stored, want %d", n, c.stored)
			}
		})
	}
	t.Run("swap", func(t *testing.T) {
		s := New(Options{AnySigner: true, AutoCreate: true})
		s.Faults.Add(localcloud.Fault{Effect: localcloud.Effect{Entries: []localcloud.EntryFault{{Do: localcloud.Swap}}}})
		a := raw(t, s, "SendMessageBatch", doc(t, m{"QueueUrl": standard, "Entries": []m{{"Id": "a", "MessageBody": "A"}, {"Id": "b", "MessageBody": "B"}}}))
		if a.listed("Successful", "a", "MD5OfMessageBody") != md5Hex("B") || a.listed("Successful", "b", "MD5OfMessageBody") != md5Hex("A") {
			t.Errorf("answered %s, want the MD5s to have changed places", a.raw)
		}
	})
}

// Two requests of one group and one of another, staggered: what a batcher's tests read off.
func TestStatsOfRequestsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{AnySigner: true, AutoCreate: true, Latency: func(*localcloud.Call) time.Duration { return 1500 * time.Millisecond }})
		for i, group := range []string{"a", "a", "b"} {
			go func() {
				time.Sleep(time.Duration(i) * time.Second)
				raw(t, s, "SendMessageBatch", doc(t, m{"QueueUrl": fifo, "Entries": []m{
					{"Id": "0", "MessageBody": "x", "MessageGroupId": group, "MessageDeduplicationId": fmt.Sprint(i)},
					{"Id": "1", "MessageBody": "x", "MessageGroupId": group, "MessageDeduplicationId": fmt.Sprintf("%d-b", i)},
				}}))
			}()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		st := s.Stats("q.fifo")
		// In flight: [0,1.5), [1,2.5), [2,3.5), which is 4.5 request-seconds in 3.5 seconds.
		if st.MaxInFlight != 2 || st.AverageInFlight != 4.5/3.5 || st.MaxInFlightPerGroup != 2 || st.BusiestGroup != "a" {
			t.Errorf("in flight: max %d, average %v, max of a group %d (%s), want 2, 1.286, 2 (a)", st.MaxInFlight, st.AverageInFlight, st.MaxInFlightPerGroup, st.BusiestGroup)
		}
		if st.Requests != 3 || st.Entries != 6 || st.EntriesPerRequest() != 2 || st.Sizes[2] != 3 || st.Groups != 2 {
			t.Errorf("stats %+v", st)
		}
	})
}
