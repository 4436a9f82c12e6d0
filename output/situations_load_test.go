package output_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localsqs"
)

// A minute of 429 with 64 batches waiting. Requests must get rarer instead of adding to it, a Retry-After
// is the least pause there is, and in the end every hook has arrived once and none was nacked for good.
func TestAMinuteOf429IsWaitedOut(t *testing.T) {
	const batches = 64
	bothClouds(t, func(t *testing.T, sqs bool) {
		for _, c := range []struct {
			name       string
			retryAfter string
			least      time.Duration // between the answer and the next request
			most       int           // requests during the minute
			fields     string
			replay     bool
		}{
			{name: "no limit on time", most: 150, fields: "backoff: { max_elapsed_time: 0s }"},
			{name: "no limit on time, Retry-After 7", retryAfter: "7", least: 7 * time.Second, most: 8 * 9, fields: "backoff: { max_elapsed_time: 0s }"},
			{name: "by default, with an input that replays", most: 400, replay: true},
		} {
			t.Run(c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var hooks [][]hook
					for i := range batches {
						hooks = append(hooks, numbered((i + 1) * 10)[i*10:])
					}
					p := newPipedPipeline(t, newScript(hooks...))
					p.script.replay = c.replay
					start := time.Now()
					var during atomic.Int64
					seen := &moments{}
					p.faults(sqs).Add(localcloud.Fault{
						If: func(*localcloud.Call) bool {
							seen.note()
							if time.Since(start) >= time.Minute {
								return false
							}
							during.Add(1)
							return true
						},
						Effect: localcloud.Effect{
							Error:  &localcloud.ErrorReply{Status: 429, Code: map[bool]string{true: "RequestThrottled", false: "RESOURCE_EXHAUSTED"}[sqs]},
							Header: http.Header{"Retry-After": {c.retryAfter}},
						},
					})
					fields := c.fields
					if !sqs {
						fields += "\nbatch: { max_entries: 10 }" // 64 requests' worth, as on SQS
					}
					p.start(p.script, p.yaml(sqs, fields)).wait()
					checkOnce(t, p.arrived(sqs), 0, batches*10)
					if p.script.ackedCount() != batches*10 || p.script.nackedTimes() != 0 {
						t.Errorf("%d acked, %d nacks reached the input, want all %d and none", p.script.ackedCount(), p.script.nackedTimes(), batches*10)
					}
					took := time.Since(start)
					t.Logf("%d requests during the minute, all was done after %v", during.Load(), took)
					if n := int(during.Load()); n > c.most || n < 5 {
						t.Errorf("%d requests during the minute, want 5 to %d", n, c.most)
					}
					if took > 95*time.Second {
						t.Errorf("all was done after %v, want soon after the minute", took)
					}
					// The first requests leave before any answer. After them nothing comes before its time.
					at := seen.all()
					for i := 1; i < len(at); i++ {
						if gap := at[i].Sub(at[i-1]); c.least > 0 && gap > 0 && gap < c.least && at[i].Sub(start) < time.Minute {
							t.Errorf("request %d came %v after another, within the Retry-After", i, gap)
						}
					}
				})
			})
		}
	})
}

// One output, two queues by metadata, and one of them is throttled for a minute: the other notices
// nothing.
func TestThrottledQueueHoldsNoOther(t *testing.T) {
	for _, batched := range []bool{false, true} {
		t.Run(fmt.Sprintf("batching=%v", batched), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 64
				hooks := numbered(2 * n)
				for i := range hooks {
					hooks[i].meta["queue"] = []string{"slow", "fast"}[i%2]
				}
				p := newPipedPipeline(t, newScript(singly(hooks)...))
				start := time.Now()
				p.sqs.Faults.Add(localcloud.Fault{
					Resource: "slow", If: func(*localcloud.Call) bool { return time.Since(start) < time.Minute },
					Effect: localcloud.Effect{Error: &localcloud.ErrorReply{Code: "RequestThrottled"}},
				})
				fields := "endpoint: " + p.server.sqs.URL() + "\nbackoff: { max_elapsed_time: 0s }"
				if !batched {
					fields += "\nbatch: { enabled: false }"
				}
				r := p.start(p.script, p.sqsYAML("${! @queue }", fields))
				time.Sleep(time.Second)
				synctest.Wait()
				if got := len(p.stored("fast")); got != n {
					t.Errorf("after a second %d of %d have arrived in the fast queue", got, n)
				}
				for i := 1; i < 2*n; i += 2 {
					if !p.script.isAcked(fmt.Sprint(i)) {
						t.Fatalf("hook %d of the fast queue is not acked after a second", i)
					}
				}
				r.wait()
				checkDone(t, p, 2*n)
				if s := p.sqs.Stats("slow"); s.Messages != n || s.Duplicates != 0 {
					t.Errorf("%d stored in the slow queue, want %d", s.Messages, n)
				}
			})
		})
	}
}

// The same with a Retry-After of ten minutes, one hook in ten for such queues or the first 300, and one
// hook per transaction: were they all to wait they would soon be all the 128 that may be in flight. Half
// of those may; what is nacked beyond them says why.
func TestLongRetryAfterLeavesTheWritesToOtherQueues(t *testing.T) {
	const n = 3000
	for name, queue := range map[string]func(i int) string{
		"one queue": func(i int) string {
			if i%10 == 0 {
				return "paused"
			}
			return "fast"
		},
		"two queues": func(i int) string {
			switch i % 20 {
			case 0:
				return "paused"
			case 10:
				return "paused-too"
			}
			return "fast"
		},
		"one queue, first": func(i int) string {
			if i < n/10 {
				return "paused"
			}
			return "fast"
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hooks := numbered(n)
				for i := range hooks {
					hooks[i].meta["queue"] = queue(i)
				}
				p := newPipedPipeline(t, newScript(singly(hooks)...))
				start := time.Now()
				for _, name := range []string{"paused", "paused-too"} {
					p.sqs.Faults.Add(localcloud.Fault{
						Resource: name, If: func(*localcloud.Call) bool { return time.Since(start) < 10*time.Minute },
						Effect: localcloud.Effect{
							Error:  &localcloud.ErrorReply{Status: 429, Code: "RequestThrottled"},
							Header: http.Header{"Retry-After": {"600"}},
						},
					})
				}
				r := p.start(p.script, p.sqsYAML("${! @queue }", "endpoint: "+p.server.sqs.URL()))
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if got := len(p.stored("fast")); got != n-n/10 {
					t.Errorf("after 10 seconds %d of %d have arrived in the other queue", got, n-n/10)
				}
				r.wait()
				nacked, stored := p.script.nackedTimes(), len(p.storedIn("paused", "paused-too"))
				t.Logf("of %d hooks for paused queues %d have waited and %d were nacked", n/10, stored, nacked)
				if stored+nacked != n/10 || stored > 64 {
					t.Errorf("%d stored in paused queues and %d nacked, want 300 in all, and 64 at most that waited", stored, nacked)
				}
				for i := range n {
					if got := p.script.nackOf(i); got != "" && !strings.HasPrefix(got, "throttled: ") {
						t.Fatalf("hook %d was nacked with %q, want throttled", i, got)
					}
				}
				checkHonest(t, p, p.storedIn("fast", "paused", "paused-too"))
			})
		})
	}
}

// offer is an input of 100,000 fresh hooks, which counts what it has been asked for and what was acked.
type offer struct {
	size, perTransaction int

	read, acked atomic.Int64
}

func (o *offer) Connect(context.Context) error { return nil }
func (o *offer) Close(context.Context) error   { return nil }
func (o *offer) ReadBatch(context.Context) (service.MessageBatch, service.AckFunc, error) {
	n := int64(o.perTransaction)
	batch := make(service.MessageBatch, n)
	first := o.read.Add(n) - n
	if first >= 100_000 {
		return nil, nil, service.ErrEndOfInput
	}
	for i := range batch {
		batch[i] = service.NewMessage(make([]byte, o.size)) // its own memory, as from a socket
		batch[i].MetaSet("ankusa_id", fmt.Sprint(first+int64(i)))
		batch[i].MetaSet("ankusa_source_id", "test")
		batch[i].MetaSet("ankusa_tenant_id", fmt.Sprint(i%5)) // one alone may not fill the queue
	}
	return batch, func(_ context.Context, err error) error {
		if err == nil {
			o.acked.Add(n)
		}
		return nil
	}, nil
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A server takes connections and requests and never answers. Offered are 100,000 hooks of 32 KiB, 3.3 GB,
// in transactions of 25, and the ceiling is 64 MB. Reading stops, and the memory in use stays below three
// times the ceiling. What waits in the queue is bounded by the ceiling; what the engine holds besides, by
// max_in_flight, here 128 transactions or 105 MB: with more or larger ones it would be more. Once the
// server answers, hooks flow again; the test watches a few and leaves the rest of the 100,000.
func TestMemoryUnderAServerThatNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const (
			ceiling  = 64_000_000
			multiple = 3
		)
		p, nets := newNetworkedPipeline(t, newScript())
		p.sqs = localsqs.New(localsqs.Options{AutoCreate: true, DiscardBodies: true, AnySigner: true,
			Latency: func(*localcloud.Call) time.Duration { return time.Second }})
		var dead atomic.Bool
		var requests atomic.Int64
		dead.Store(true)
		p.reserve(nets.sqs, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			if !dead.Load() {
				p.sqs.ServeHTTP(w, r)
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}))
		o := &offer{size: 32 << 10, perTransaction: 25}
		before := heap()
		metrics := newSeries()
		p.addSeries(metrics)
		r := p.start(o, p.sqsYAML("hooks", fmt.Sprintf("batch: { queue_max_bytes: %d }\nbackoff: { max_elapsed_time: 0s }", ceiling)),
			func(b *service.StreamBuilder) { must(t, b.SetMetricsYAML("series: {}")) })

		var last int64
		for i := range 2 {
			time.Sleep(30 * time.Second)
			synctest.Wait()
			used, read := heap()-before, o.read.Load()
			t.Logf("after %d s %d hooks (%d MB) have been read, %d MB are in use, %d requests were sent", 30*(i+1), read, read*int64(o.size)/1_000_000, used/1_000_000, requests.Load())
			if used > multiple*ceiling {
				t.Errorf("%d bytes are in use, more than %d times the ceiling", used, multiple)
			}
			if i > 0 && read != last {
				t.Errorf("reading goes on: %d hooks, then %d", last, read)
			}
			last = read
		}
		if got := last * int64(o.size); got < ceiling || got > 2*ceiling {
			t.Errorf("%d bytes have been read, want one to two times the ceiling", got)
		}
		// What waits is the ceiling's to bound; a retry comes back even when its room has been taken.
		if most := metrics.highest("ankusa_queue_bytes"); most < ceiling*9/10 || most > ceiling+8*262_144 {
			t.Errorf("%d bytes waited at most, want the ceiling, %d", most, ceiling)
		}
		if o.acked.Load() != 0 {
			t.Errorf("%d hooks acked by a server that never answered", o.acked.Load())
		}
		if n := requests.Load(); n < 40 {
			t.Errorf("%d requests in a minute: there is no limit on the wait for an answer", n)
		}

		dead.Store(false)
		time.Sleep(12 * time.Second)
		synctest.Wait()
		acked, read := o.acked.Load(), o.read.Load()
		t.Logf("12 s after its recovery %d hooks are acked, %d have been read", acked, read)
		if acked < 100 || read <= last {
			t.Errorf("it did not recover; log:\n%s", p.logs)
		}
		if stored := int64(p.sqs.Stats("hooks").Messages); stored < acked {
			t.Errorf("%d acked, %d stored", acked, stored)
		}
		dead.Store(true)
		r.stop(0)
		if strings.Contains(p.logs.String(), "permanent") {
			t.Errorf("the log says:\n%s", p.logs)
		}
	})
}
