package batcher

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

var setSchedules = flag.Uint64("model.setschedules", 150, "how many schedules of several queues the model test runs")

// TestModel knows what one queue must do next. This test knows less of more: several queues that share
// callers, all of them at once. It follows each entry, and whenever all goroutines are blocked it counts
// what the queues hold and compares that with what the gauge and the observer have been told.
func TestSetModel(t *testing.T) {
	var seen setSeen
	for seed := uint64(1); seed <= *setSchedules && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) {
			m := newSetModel(t, seed, &seen)
			m.run()
		})
	}
	if n := int64(*setSchedules); seen.full < n || seen.paused < n/10 || seen.sitting < n {
		t.Errorf("the schedules are too tame: %+v", seen)
	}
}

// setSeen is what the schedules have come across.
type setSeen struct{ full, paused, sitting int64 }

type setModel struct {
	t    *testing.T
	seed uint64
	opts Options
	set  *Set[*traveller]
	seen *setSeen

	queues  int
	patient bool // nothing may fail that nobody has cancelled
	closing bool // before all callers are done

	mu       sync.Mutex // guards what follows
	rng      *rand.Rand
	inFlight map[string]int // requests by queue and group
	newest   map[string]int // the last entry that was taken, by queue, group and call
	told     changes

	running atomic.Int32
	calls   atomic.Int64
}

// A traveller is an entry on its way.
type traveller struct {
	queue, group string
	call         int64
	index        int

	inFlight atomic.Bool
	taken    atomic.Bool
	returned *atomic.Bool // its Submit
}

func newSetModel(t *testing.T, seed uint64, seen *setSeen) *setModel {
	m := &setModel{
		t: t, seed: seed, seen: seen, rng: rand.New(rand.NewPCG(seed, 2)),
		inFlight: map[string]int{}, newest: map[string]int{},
	}
	m.queues, m.patient, m.closing = 1+m.below(4), m.below(3) == 0, m.below(4) == 0
	m.opts = Options{
		MaxEntries:         1 + m.below(5),
		Linger:             []time.Duration{20 * time.Millisecond, time.Second}[m.below(2)],
		MaxRequests:        1 + m.below(4),
		MaxInFlight:        2 + m.below(7),
		ManyQueues:         m.below(4) > 0,
		QueueMax:           2 + m.below(12),
		QueueMaxBytes:      10 + m.below(50),
		QueueTenantMax:     1 + m.below(8),
		OneGroupPerRequest: m.below(3) == 0,
		StrictOrder:        m.below(2) == 0,
		InitialInterval:    10 * time.Millisecond,
		MaxInterval:        100 * time.Millisecond,
		CancelGrace:        30 * time.Millisecond,
		IdleTimeout:        m.upTo(10*time.Millisecond, 300*time.Millisecond),
		Observer:           m,
	}
	if !m.patient {
		m.opts.MaxRetries, m.opts.MaxElapsedTime = m.below(4), m.upTo(100*time.Millisecond, 300*time.Millisecond)
	}
	s, err := NewSet(m.send, m.opts)
	if err != nil {
		t.Fatal(err)
	}
	m.set = s
	return m
}

func (m *setModel) below(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rng.IntN(n)
}

func (m *setModel) upTo(low, high time.Duration) time.Duration {
	return low + time.Duration(m.below(int(high-low)))
}

func (m *setModel) errorf(format string, args ...any) {
	m.t.Helper()
	m.t.Errorf("seed %d: "+format, append([]any{m.seed}, args...)...)
}

// Waiting, Held and Retried make m the Set's observer.
func (m *setModel) Waiting(entries, bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told.entries += entries
	m.told.bytes += bytes
}

func (m *setModel) Held(groups int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told.held += groups
}

func (m *setModel) Retried(classify.Class, int) {}

// send checks what leaves, takes its time, and takes some.
func (m *setModel) send(ctx context.Context, queue string, values []*traveller) []error {
	groups := m.depart(queue, values)
	if d := []time.Duration{0, m.upTo(1, 30*time.Millisecond), 200 * time.Millisecond}[min(m.below(20)/7, 2)]; d > 0 {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
	errs := make([]error, len(values))
	if m.below(2) == 0 { // else all are taken
		for i := range errs {
			errs[i] = m.answer()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range groups {
		m.inFlight[g]--
	}
	for i, v := range values {
		v.inFlight.Store(false)
		if errs[i] != nil {
			continue
		}
		v.taken.Store(true)
		if v.group == "" || !m.patient || !m.opts.StrictOrder {
			continue
		}
		key := fmt.Sprint(queue, v.group, v.call)
		if m.newest[key] > v.index {
			m.errorf("entry %d of group %s is taken after entry %d", v.index, v.group, m.newest[key])
		}
		m.newest[key] = v.index
	}
	return errs
}

func (m *setModel) depart(queue string, values []*traveller) (groups []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mine := map[string]bool{}
	for _, v := range values {
		if v.queue != queue || v.returned.Load() || v.taken.Load() || v.inFlight.Swap(true) {
			m.errorf("an entry of queue %s is sent to %s; Submit has returned: %v, taken before: %v", v.queue, queue, v.returned.Load(), v.taken.Load())
		}
		if key := queue + v.group; v.group != "" && !mine[key] {
			mine[key] = true
			groups = append(groups, key)
			if m.inFlight[key]++; m.inFlight[key] > 1 {
				m.errorf("two requests of group %s are in flight", v.group)
			}
		}
	}
	return groups
}

func (m *setModel) answer() error {
	e := &classify.Error{Service: "test"}
	switch n := m.below(24); {
	case n < 12:
		return nil
	case n < 14 && !m.patient:
		e.Class = classify.Permanent
	case n < 17:
		e.Class, e.RetryAfter = classify.Throttled, time.Duration(m.below(3000))*time.Millisecond
	case n < 20:
		e.Class = classify.Throttled
	case n < 22:
		e.RetryAfter = time.Duration(m.below(400)) * time.Millisecond
	}
	return e
}

func (m *setModel) run() {
	var callers sync.WaitGroup
	for range m.opts.MaxInFlight {
		m.running.Add(1)
		callers.Go(func() {
			defer m.running.Add(-1)
			for range 4 + m.below(10) {
				m.submit()
			}
		})
	}
	for step := 0; m.running.Load() > 0 && !m.t.Failed() && !(m.closing && step == 60); step++ {
		m.check()
		time.Sleep(m.upTo(time.Millisecond, 8*time.Millisecond))
	}
	if m.closing || m.t.Failed() {
		m.close(m.t.Failed() || m.below(2) == 0)
	}
	callers.Wait()
	m.check()
	if !m.closing && !m.t.Failed() {
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(m.set.queues) != 0 || m.set.gauge.queues.len != 0 {
			m.errorf("%d queues are open after an hour without any call, %d listed", len(m.set.queues), m.set.gauge.queues.len)
		}
	}
	m.close(false)
	if n := m.set.gauge.awaiting.Load(); n != 0 || m.set.gauge.sitting != 0 || m.told != (changes{}) {
		m.errorf("at the end the gauge counts %d, %d sit, the observer is left with %+v", n, m.set.gauge.sitting, m.told)
	}
}

func (m *setModel) close(forced bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if forced {
		cancel()
	}
	if err := m.set.Close(ctx); err != nil && !forced {
		m.errorf("Close = %v", err)
	}
}

func (m *setModel) submit() {
	n, call := 1+m.below(4), m.calls.Add(1)
	if m.below(8) == 0 {
		n = 25
	}
	var returned atomic.Bool
	all := make([]Entry[*traveller], n)
	values := make([]*traveller, n)
	mixed, queue := m.below(2) == 0, m.below(m.queues)
	for i := range all {
		if mixed {
			queue = m.below(m.queues)
		}
		v := &traveller{queue: fmt.Sprint("q", queue), call: call, index: i, returned: &returned}
		if g := m.below(5); g > 1 {
			v.group = fmt.Sprint("g", g)
		}
		values[i] = v
		all[i] = Entry[*traveller]{Value: v, Queue: v.queue, Group: v.group, Tenant: fmt.Sprint("t", m.below(3)), Size: 1 + m.below(8)}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cancelled := m.below(6) == 0
	if cancelled {
		timer := time.AfterFunc(m.upTo(0, 200*time.Millisecond), cancel)
		defer timer.Stop()
	}
	results := m.set.Submit(ctx, all)
	returned.Store(true)
	for i, err := range results {
		switch code := codeOf(err); {
		case code == "outcome_unknown":
		case values[i].taken.Load() != (err == nil):
			m.errorf("an entry was taken: %v, and its result is %v", values[i].taken.Load(), err)
		case err != nil && m.patient && !cancelled && !m.closing:
			m.errorf("without a limit an entry failed with %v", err)
		case code == "paused":
			atomic.AddInt64(&m.seen.paused, 1)
		}
	}
	if m.below(3) == 0 {
		time.Sleep(m.upTo(0, 50*time.Millisecond))
	}
}

// check waits until nothing moves and compares.
func (m *setModel) check() {
	m.t.Helper()
	synctest.Wait()
	g, full := m.set.gauge, m.set.gauge.full()
	m.set.mu.Lock()
	defer m.set.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	var have changes
	submissions := map[*submission[*traveller]]bool{}
	for _, q := range m.set.queues {
		m.checkQueue(q.batcher, full, &have, submissions)
	}
	if have != m.told {
		m.errorf("the queues hold %+v, the observer knows of %+v", have, m.told)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	awaiting, sitting := 0, 0
	for s := range submissions {
		if s.admitting.Load() == 0 {
			awaiting++
		}
		if s.sitting > 0 {
			sitting++
		}
	}
	if n := int(g.awaiting.Load()); n != awaiting || g.sitting != sitting || g.maySit >= 0 && sitting > g.maySit {
		m.errorf("%d calls await results and %d sit, the gauge counts %d and %d of %d", awaiting, sitting, n, g.sitting, g.maySit)
	}
	if full {
		m.seen.full++
	}
	if sitting > 0 {
		m.seen.sitting++
	}
}

// checkQueue checks that b waits for something that will come, and adds up what it holds.
func (m *setModel) checkQueue(b *Batcher[*traveller], full bool, have *changes, submissions map[*submission[*traveller]]bool) {
	m.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if !b.closed {
		if b.readyLocked(now) && (full || !b.inGauge.linked() || b.pools[poolShared].due+b.pools[poolDue].due > 0) {
			m.errorf("queue %s may send and does not: nobody is left: %v, listed: %v", b.queue, full, b.inGauge.linked())
		}
		wake := b.alarms.next()
		if b.waiting.entries > 0 && b.pace.pausedUntil > now && (wake == never || wake > b.pace.pausedUntil) {
			wake = b.pace.pausedUntil
		}
		if wake != never && (wake <= now || !b.wakeup.armed || b.wakeup.at > wake) {
			m.errorf("queue %s has to wake at %v; it is %v, the timer is armed: %v, for %v", b.queue, wake, now, b.wakeup.armed, b.wakeup.at)
		}
		if b.roomy.len+b.unblocked.len > 0 {
			m.errorf("queue %s has room that nobody was given", b.queue)
		}
	}
	for c := range b.calls.all {
		submissions[c.sub] = true
		if b.gauge.maySit >= 0 && b.pace.tooLong(&b.opts, now) && c.waits() && !c.sits && c.gone == nil {
			m.errorf("queue %s: a call waits for too long and is not counted", b.queue)
		}
		for it := range c.items.all {
			if it.state != itemSent {
				have.entries++
				have.bytes += it.entry().Size
			}
		}
	}
	for _, l := range b.groups {
		if l.state == laneParked {
			have.held++
		}
	}
}
