package output_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/localcloud"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localsqs"
	"github.com/ankusa-connect/ankusa-connect/message"
	"github.com/ankusa-connect/ankusa-connect/output"
)

// shelf is a store whose answers are scripted.
type shelf struct {
	answer func(key string) error // nil: stored

	mu      sync.Mutex
	objects map[string]int // how often each key was stored
	now     int
	most    int // Puts at once
}

func (s *shelf) Put(_ context.Context, o *claim.Object) error {
	s.mu.Lock()
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	time.Sleep(10 * time.Millisecond) // the bubble's
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
	if s.answer != nil {
		if err := s.answer(o.Key()); err != nil {
			return err
		}
	}
	s.objects[o.Key()]++
	return nil
}

func (s *shelf) Check(context.Context) error { return nil }
func (s *shelf) Close(context.Context) error { return nil }

// shelved is a pipeline in a bubble whose SQS output stores big bodies on a shelf.
func shelved(t *testing.T, script *script, answer func(string) error) (*pipeline, *shelf) {
	s := &shelf{answer: answer, objects: map[string]int{}}
	p := newPipelineOver(t, script, func() (net.Listener, []output.Option) {
		l := localcloud.NewPipeListener()
		return l, []output.Option{output.WithDial(l.DialContext), output.WithLocal(output.Local{
			SQSEndpoint: "http://localcloud.test", Region: localsqs.DefaultRegion,
			AccessKeyID: localsqs.DefaultAccessKeyID, SecretAccessKey: localsqs.DefaultSecretAccessKey,
			OpenStore: func() (claim.Store, error) { return s, nil },
		})}
	})
	return p, s
}

// big makes the body of a hook one that has to be stored.
func big(h *hook) { h.body = strings.Repeat("x", message.DefaultInlineMaxBytes+1) }

func TestBodyOfTheLimitIsInlineAndOneByteMoreIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hooks := numbered(2)
		hooks[0].body = strings.Repeat("x", message.DefaultInlineMaxBytes)
		big(&hooks[1])
		p, s := shelved(t, newScript(hooks), nil)
		p.run(p.sqsYAML("hooks", ""))
		claims := 0
		for _, m := range p.sqs.Messages("hooks") {
			d, err := message.Decode([]byte(m.Body))
			if err != nil {
				t.Fatal(err)
			}
			if !d.Inline() {
				claims++
				if s.objects[d.Claim.Key()] != 1 || d.ID != "id-1" {
					t.Errorf("%s names %s, which is stored %d times", d.ID, d.Claim.Key(), s.objects[d.Claim.Key()])
				}
			}
		}
		if claims != 1 || len(s.objects) != 1 {
			t.Errorf("%d claims and %d objects, want one of each", claims, len(s.objects))
		}
	})
}

// The store is throttled for half a minute: only the hook that needs it waits.
func TestThrottledStoreConcernsItsHookAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hooks := numbered(10)
		big(&hooks[4])
		start := time.Now()
		p, _ := shelved(t, newScript(hooks), func(string) error {
			if time.Since(start) < 20*time.Second {
				return classify.Throttledf("s3", "SlowDown", "slow down")
			}
			return nil
		})
		p.run(p.sqsYAML("hooks", ""))
		checkOnce(t, p.stored("hooks"), 0, 10)
		for _, m := range p.sqs.Messages("hooks") {
			waited := m.Sent.Sub(start)
			if id := m.Attributes["ankusa_id"]; (id == "id-4") != (waited >= 20*time.Second) || id != "id-4" && waited > time.Second {
				t.Errorf("%s is stored after %v", id, waited)
			}
		}
		checkDone(t, p, 10)
	})
}

// On FIFO the group of the big body waits in order, and the other groups do not.
func TestUploadHoldsItsOwnGroupOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hooks := tenants(64 * 3)
		big(&hooks[5])
		start := time.Now()
		p, _ := shelved(t, newScript(hooks), func(string) error {
			if time.Since(start) < 20*time.Second {
				return classify.Transientf("s3", "", "away")
			}
			return nil
		})
		p.run(p.sqsYAML("hooks.fifo", ""))
		checkOrder(t, p.sqs.Messages("hooks.fifo"), len(hooks), true)
		for _, m := range p.sqs.Messages("hooks.fifo") {
			if waited := m.Sent.Sub(start); (m.Group == "tenant-05/test") != (waited >= 20*time.Second) {
				t.Errorf("%s of group %s is stored after %v", m.Attributes["ankusa_id"], m.Group, waited)
			}
		}
	})
}

// Given up on, a body takes the rest of its group with it; a missing bucket is config for its hook.
func TestFailedUploadsAreNackedAlone(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"away", classify.Transientf("s3", "", "away"), "transient: s3"},
		{"no bucket", classify.Configf("s3", "NoSuchBucket", "make it"), "config: s3 NoSuchBucket"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hooks := numbered(10)
				big(&hooks[4])
				p, _ := shelved(t, newScript(hooks), func(string) error { return c.err })
				p.run(fallback(p.sqsYAML("hooks", "max_retries: 1")))
				if len(p.stored("hooks")) != 9 || len(p.sink.errs) != 1 || !strings.HasPrefix(p.sink.errs[0], c.want) || p.sink.got[0] != "4" {
					t.Errorf("%d stored, the fallback got %q with %q", len(p.stored("hooks")), p.sink.got, p.sink.errs)
				}
			})
		})
	}
}

func TestAtMostSixteenUploadsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hooks := numbered(100)
		for i := range hooks {
			big(&hooks[i])
		}
		p, s := shelved(t, newScript(chunks(hooks, 10)...), nil)
		p.run(p.sqsYAML("hooks", ""))
		checkOnce(t, p.stored("hooks"), 0, 100)
		if s.most != 16 || len(s.objects) != 100 {
			t.Errorf("at most %d uploads at once and %d objects, want 16 and 100", s.most, len(s.objects))
		}
	})
}

// A hook that brings its claim writes nothing, and one that would be refused leaves nothing behind.
func TestNothingIsStoredThatNoMessageNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hooks := numbered(2)
		ref := claim.HookRef("", "elsewhere", 1737500000000)
		hooks[0].meta["ankusa_claim"] = ref.String()
		hooks[0].meta["ankusa_claim_sha256"] = strings.Repeat("ab", 32)
		hooks[0].meta["ankusa_claim_size"] = "123456"
		big(&hooks[1])
		hooks[1].meta["ankusa_dedupe_key"] = "evt\x00" // no SQS attribute can hold it
		p, s := shelved(t, newScript(hooks), nil)
		p.run(fallback(p.sqsYAML("hooks", "")))
		if len(s.objects) != 0 {
			t.Errorf("stored: %v", s.objects)
		}
		messages := p.sqs.Messages("hooks")
		if len(messages) != 1 || len(p.sink.errs) != 1 || !strings.HasPrefix(p.sink.errs[0], "permanent: ") {
			t.Fatalf("%d messages, fallback %q", len(messages), p.sink.errs)
		}
		if d, err := message.Decode([]byte(messages[0].Body)); err != nil || d.Claim != ref || d.Size != 123456 {
			t.Errorf("the message carries %v, %d bytes (%v), want the hook's own claim", d.Claim, d.Size, err)
		}
	})
}
