package output_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localpubsub"
)

// Ten seconds without a connection, then everything is as before: an ordered output goes on by itself,
// in order, and nobody has to resume anything.
func TestOrderResumesAfterTenSecondsOfRefusedConnections(t *testing.T) {
	bothClouds(t, func(t *testing.T, sqs bool) {
		for _, from := range []string{"the start", "the middle"} {
			t.Run("from "+from, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const n = 40
					p, nets := newNetworkedPipeline(t, newScript(singly(numbered(n))...))
					net, queue, fields := nets.pubsub, "hooks", "ordering_key: one"
					if sqs {
						net, queue, fields = nets.sqs, "hooks.fifo", ""
					}
					cut := func() {
						net.down.Store(true)
						_ = p.server.pubsub.Close()
						_ = p.server.sqs.Close()
						time.AfterFunc(10*time.Second, func() {
							net.listener = localcloud.NewPipeListener()
							handler := http.Handler(p.pubsub)
							if sqs {
								handler = p.sqs
							}
							again := localcloud.Serve(net.listener, handler)
							t.Cleanup(func() { _ = again.Close() })
							net.down.Store(false)
						})
					}
					var once sync.Once
					if from == "the start" {
						once.Do(cut)
					}
					start := time.Now()
					r := p.start(&source{script: p.script, pause: func(i int) time.Duration {
						if i == n/2 {
							once.Do(cut)
						}
						return 10 * time.Millisecond
					}}, map[bool]string{true: p.sqsYAML(queue, fields), false: p.pubsubYAML(queue, fields)}[sqs])
					r.wait()
					checkDone(t, p, n)
					if took := time.Since(start); took < 10*time.Second || took > 25*time.Second {
						t.Errorf("all was done after %v, want soon after 10s", took)
					}
					var got []string
					for _, m := range p.sqs.Messages(queue) {
						got = append(got, m.Attributes["ankusa_id"])
					}
					for _, m := range p.pubsub.Published(queue) {
						if m.OrderingKey != "one" {
							t.Fatalf("ordering key %q", m.OrderingKey)
						}
						got = append(got, m.Attributes["ankusa_id"])
					}
					for i := range n {
						if i >= len(got) || got[i] != fmt.Sprintf("id-%d", i) {
							t.Fatalf("stored in the order %v", got)
						}
					}
					if p.logs.String() != "" {
						t.Errorf("nothing was given up, and the log says:\n%s", p.logs)
					}
				})
			})
		}
	})
}

// A server drops idle connections and the sender pauses for longer. Whether the connection is ours to
// drop first or turns out dead, nobody notices: no nack, no warning, each hook sent once.
func TestStaleConnectionIsNotNoticed(t *testing.T) {
	for _, c := range []struct{ serverIdle, pause time.Duration }{
		{5 * time.Second, 6 * time.Second},
		{time.Second, 2 * time.Second}, // sooner than any client's own limit
		{3999 * time.Millisecond, 3999 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("server drops after %v, pause %v", c.serverIdle, c.pause), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, nets := newNetworkedPipeline(t, newScript(singly(numbered(5))...))
				p.reserve(nets.sqs, nil, func(s *http.Server) { s.IdleTimeout = c.serverIdle })
				start := time.Now()
				r := p.start(&source{script: p.script, pause: func(int) time.Duration { return c.pause }}, p.sqsYAML("hooks", ""))
				r.wait()
				checkOnce(t, p.stored("hooks"), 0, 5)
				checkDone(t, p, 5)
				if s := p.sqs.Stats("hooks"); s.Requests != 5 || s.Messages != 5 {
					t.Errorf("%d requests, %d stored, want 5 of each", s.Requests, s.Messages)
				}
				if took := time.Since(start); took > 5*c.pause+5*100*time.Millisecond {
					t.Errorf("all was done after %v: a resend waited", took)
				}
				if p.logs.String() != "" {
					t.Errorf("the log says:\n%s", p.logs)
				}
			})
		})
	}
}

// A reset after the request was read, on a connection that had served before: the request goes again at
// once, on a fresh connection.
func TestResetOfAReusedConnectionIsResentAtOnce(t *testing.T) {
	for _, effect := range []localcloud.Effect{{Cut: true}, {Cut: true, Reset: true}, {Cut: true, Stored: true}} {
		t.Run(fmt.Sprintf("%+v", effect), func(t *testing.T) {
			// A bubble: net/http doesn't reuse a connection whose writer is 50 ms late to say that it is done.
			synctest.Test(t, func(t *testing.T) {
				p := newPipedPipeline(t, newScript(singly(numbered(3))...))
				p.sqs.Faults.Add(localcloud.Fault{Action: "SendMessageBatch", Nth: 2, Effect: effect})
				start := time.Now()
				p.start(p.script, p.sqsYAML("hooks.fifo", "batching: { count: 1 }\nmax_retries: 1\nbackoff: { initial_interval: 1h, max_interval: 1h }")).wait()
				checkOnce(t, p.stored("hooks.fifo"), 0, 3)
				checkDone(t, p, 3)
				if n := p.sqs.Requests("SendMessageBatch"); n != 4 || p.logs.String() != "" {
					t.Errorf("%d requests, want 4; log:\n%s", n, p.logs)
				}
				if took := time.Since(start); took > time.Minute {
					t.Errorf("all was done after %v: a retry, unlike a resend, waits for an hour", took)
				}
			})
		})
	}
}

// The service's clock is twenty minutes ahead of ours. One request is refused, and from then on each is
// signed for the service's time; a retry is signed anew.
func TestWrongClockIsLearntWithoutANack(t *testing.T) {
	for _, skew := range []time.Duration{20 * time.Minute, -20 * time.Minute} {
		t.Run(skew.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 30
				p := newPipedPipeline(t, newScript(singly(numbered(n))...))
				first := true
				p.sqs.Faults.Add(localcloud.Fault{
					If: func(c *localcloud.Call) bool {
						at, err := time.Parse("20060102T150405Z", c.Header.Get("X-Amz-Date"))
						// Both the Date header and X-Amz-Date are cut to whole seconds.
						if off := at.Sub(time.Now().Add(skew)); err != nil || !first && off.Abs() > 2*time.Second {
							t.Errorf("request %d is signed for a time %v off the service's", c.Ordinal, off)
						}
						first = false
						return true
					},
					Effect: localcloud.Effect{Skew: skew},
				}, localcloud.Fault{Nth: 5, Action: "SendMessageBatch", Effect: localcloud.Effect{Error: &localcloud.ErrorReply{Code: "InternalFailure"}}})
				r := p.start(&source{script: p.script, pause: func(int) time.Duration { return time.Second }},
					p.sqsYAML("hooks.fifo", "backoff: { initial_interval: 10s, max_interval: 10s }"))
				r.wait()
				checkOrder(t, p.sqs.Messages("hooks.fifo"), n, true)
				checkDone(t, p, n)
				refused := 0
				for code, n := range p.sqs.Refused() {
					t.Logf("%d times %s", n, code)
					refused += n
				}
				for code, n := range p.sqs.Stats("hooks.fifo").Refused {
					t.Logf("%d times %s", n, code)
					refused += n
				}
				if refused != 2 { // the first, for its time, and the scripted failure
					t.Errorf("%d requests refused, want 2: the offset was not kept", refused)
				}
			})
		})
	}
}

// A wrong secret on a sound clock is a wrong secret.
func TestSignatureRefusedOnASoundClockIsConfig(t *testing.T) {
	p := newPipeline(t, newScript(numbered(2)))
	p.run(strings.Replace(p.sqsYAML("hooks", ""), "localcloud-is-no-secret", "localcloud-is-another", 1))
	if got := p.script.nackOf(0); p.script.nackedHooks() != "0 1" || !strings.HasPrefix(got, "config: sqs 403 InvalidSignatureException") {
		t.Errorf("nacked %q with %q", p.script.nackedHooks(), got)
	}
	if n := p.sqs.Requests(""); n > 2 {
		t.Errorf("%d requests, want at most 2", n)
	}
}

// The emulator's variable, as people write it: plain http, no token, whatever key file lies around.
func TestEmulatorVariable(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key.json")
	must(t, os.WriteFile(key, []byte(`{"type":"service_account","project_id":"real","private_key":"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n","client_email":"x@real.iam.gserviceaccount.com","token_uri":"https://oauth2.googleapis.com/token"}`), 0o600))
	for _, c := range []struct{ listen, value string }{
		{"127.0.0.1:0", "%s"}, {"127.0.0.1:0", "http://%s/"}, {"[::1]:0", "%s"},
	} {
		for _, credentials := range []string{"", key} {
			t.Run(fmt.Sprintf("%s %s key=%v", c.listen, c.value, credentials != ""), func(t *testing.T) {
				l, err := localcloud.Listen(c.listen)
				if err != nil {
					t.Skip(err) // no IPv6 here
				}
				cloud := localpubsub.New(localpubsub.Options{AutoCreate: true})
				server := localcloud.Serve(l, cloud)
				defer server.Close()
				t.Setenv("PUBSUB_EMULATOR_HOST", fmt.Sprintf(c.value, l.Addr()))
				t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", credentials)
				p := newPipeline(t, newScript(numbered(3)))
				var authorization []string
				cloud.Faults.Add(localcloud.Fault{If: func(c *localcloud.Call) bool {
					authorization = append(authorization, c.Header.Get("Authorization"))
					return false
				}})
				p.run("ankusa_pubsub: { project: acme, topic: hooks, max_retries: 1 }")
				checkDone(t, p, 3)
				if got := cloud.Stats("hooks"); got.Messages != 3 {
					t.Errorf("%d messages in the emulator, want 3", got.Messages)
				}
				if len(authorization) == 0 || strings.Join(authorization, "") != "" {
					t.Errorf("authorization %q, want none", authorization)
				}
			})
		}
	}

	// One that can't be a host is refused at the start, by its name.
	for _, value := range []string{"ftp://localhost:8085", "local host:8085", "http://"} {
		t.Run(value, func(t *testing.T) {
			t.Setenv("PUBSUB_EMULATOR_HOST", value)
			p := newPipeline(t, newScript())
			b := p.env.NewStreamBuilder()
			must(t, b.AddInputYAML("script: {}"))
			must(t, b.AddOutputYAML("ankusa_pubsub: { project: acme, topic: hooks }"))
			stream, err := b.Build()
			if err == nil {
				err = stream.Run(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), "PUBSUB_EMULATOR_HOST") {
				t.Errorf("%v, want an error that names the variable", err)
			}
		})
	}
}
