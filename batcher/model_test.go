package batcher

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

var (
	modelSeed      = flag.Uint64("model.seed", 0, "run only this schedule of the model test")
	modelSchedules = flag.Uint64("model.schedules", 3000, "how many schedules the model test runs")
)

// Random arrivals, results, cancellations, waits and closes, against a model that knows what the
// package comment promises and not how it is done. Invariants are checked after every step, when
// all goroutines are blocked. A failure names its seed: go test -run Model -model.seed=N.
func TestModel(t *testing.T) {
	first, last := uint64(1), *modelSchedules
	if *modelSeed > 0 {
		first, last = *modelSeed, *modelSeed
	}
	if testing.Short() {
		last = min(last, first+500)
	}
	var sent, retried, withheld, blocked, shutOut, expired uint64
	for seed := first; seed <= last && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) {
			m := newModel(t, seed)
			m.run()
			sent, retried, withheld, blocked = sent+m.sent, retried+m.retried, withheld+m.withheld, blocked+m.blocked
			shutOut, expired = shutOut+m.shutOut, expired+m.expired
		})
	}
	if n := last - first + 1; *modelSeed == 0 && (retried < n || withheld < n/2 || blocked < n || shutOut < n/10 || expired < n/20) {
		t.Errorf("the schedules are too tame: %d sent, %d retried, %d held behind others, %d calls blocked, %d shut out, %d expired",
			sent, retried, withheld, blocked, shutOut, expired)
	}
}

type model struct {
	t    *testing.T
	seed uint64
	rng  *rand.Rand
	opts Options
	b    *Batcher[*tag]

	mu     sync.Mutex // guards what SendFunc, Jitter and Submits write
	landed []*flight  // requests that have left since the last step
	drawn  float64

	step    int
	calls   []*modelCall
	flights []*flight
	floor   time.Time // the latest Retry-After of a throttled request
	closing bool
	closed  chan error

	sent, retried, withheld, blocked uint64
	shutOut                          uint64 // entries that did not wait for the floor
	expired                          uint64 // retries that did not leave in time
}

// A tag is an entry, as the model sees it.
type tag struct {
	call    *modelCall
	index   int
	group   string
	tenant  string
	size    int
	wire    int
	state   tagState
	step    int       // when it was admitted
	since   time.Time // when it was admitted
	first   time.Time // when it was first sent
	retryAt time.Time // not before; zero for what has not failed
	chance  time.Time // since when a retry could leave, as far as its group goes
	last    error     // its last failure
	tries   int
	want    func(error) bool // its result, once it is known
	wantIs  string
}

type tagState int

const (
	tagNew tagState = iota // waits for room
	tagWaiting
	tagSent
	tagDone
)

type modelCall struct {
	tags        []*tag
	cancel      context.CancelFunc
	cancelledAt time.Time
	sits        bool // waits out a long pause
	results     []error
	returned    bool
}

type flight struct {
	tags   []*tag
	answer chan []error
	forced bool
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1))}
	r := m.rng
	m.opts = Options{
		MaxEntries:         1 + r.IntN(5),
		MaxBytes:           []int{0, 20}[r.IntN(2)],
		MaxWireBytes:       []int{0, 40}[r.IntN(2)],
		RequestWireBytes:   5,
		Linger:             20 * time.Millisecond,
		MaxRequests:        1 + r.IntN(4),
		MaxInFlight:        r.IntN(5),
		ManyQueues:         r.IntN(2) == 0,
		QueueMax:           3 + r.IntN(20),
		QueueMaxBytes:      30 + r.IntN(200),
		QueueTenantMax:     2 + r.IntN(10),
		OneGroupPerRequest: r.IntN(3) == 0,
		StrictOrder:        r.IntN(3) == 0,
		MaxRetries:         r.IntN(4),
		InitialInterval:    10 * time.Millisecond,
		MaxInterval:        100 * time.Millisecond,
		MaxElapsedTime:     time.Duration(r.IntN(2)) * 150 * time.Millisecond,
		CancelGrace:        50 * time.Millisecond,
		Jitter:             m.jitter,
	}
	b, err := New("q", m.send, m.opts)
	if err != nil {
		t.Fatal(err)
	}
	m.b = b
	return m
}

func (m *model) jitter() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drawn = m.rng.Float64()
	return m.drawn
}

func (m *model) send(ctx context.Context, _ string, values []*tag) []error {
	f := &flight{tags: slices.Clone(values), answer: make(chan []error)}
	m.mu.Lock()
	m.landed = append(m.landed, f)
	m.mu.Unlock()
	select {
	case errs := <-f.answer:
		return errs
	case <-ctx.Done():
		m.mu.Lock()
		f.forced = true
		m.mu.Unlock()
		return nil // missing results: transient
	}
}

func (m *model) run() {
	for range 10 + m.rng.IntN(40) {
		m.act()
		m.settleStep()
		if m.t.Failed() {
			break
		}
	}
	m.drain()
}

// act takes one random step.
func (m *model) act() {
	r := m.rng
	switch n := r.IntN(100); {
	case n < 35:
		open := 0
		for _, c := range m.calls {
			if !c.returned {
				open++
			}
		}
		if m.opts.MaxInFlight == 0 && open < 8 || open < m.opts.MaxInFlight {
			m.submit()
		}
	case n < 70:
		if len(m.flights) > 0 {
			m.answer(m.flights[r.IntN(len(m.flights))], m.randomResults)
		}
	case n < 75:
		if len(m.calls) > 0 {
			m.cancelCall(m.calls[r.IntN(len(m.calls))])
		}
	case n < 76:
		if !m.closing {
			m.close(r.IntN(2) == 0)
		}
	case n < 90:
		m.sleep(time.Duration(r.IntN(25)) * time.Millisecond)
	default:
		m.sleep(time.Duration(r.IntN(150)) * time.Millisecond)
	}
}

// sleep stops and checks each time the Batcher's timer fires, so that the model knows when what
// happened.
func (m *model) sleep(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end) && !m.t.Failed(); {
		m.b.mu.Lock()
		next := end
		if m.b.wakeup.armed {
			next = m.b.epoch.Add(m.b.wakeup.at)
		}
		m.b.mu.Unlock()
		if next.Before(end) {
			time.Sleep(time.Until(next))
			m.settleStep()
		} else {
			time.Sleep(time.Until(end))
		}
	}
}

func (m *model) submit() {
	r := m.rng
	n := 1 + r.IntN(6)
	if r.IntN(8) == 0 {
		n = 30
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &modelCall{cancel: cancel}
	entries := make([]Entry[*tag], n)
	for i := range entries {
		g := &tag{call: c, index: i, tenant: string(rune('a' + r.IntN(3))), size: 1 + r.IntN(8), wire: 1 + r.IntN(12)}
		if r.IntN(15) == 0 {
			g.size = 25 // larger than MaxBytes
		}
		if k := r.IntN(5); k > 1 {
			g.group = string(rune('A' + k))
		}
		c.tags = append(c.tags, g)
		entries[i] = Entry[*tag]{Value: g, Tenant: g.tenant, Group: g.group, Size: g.size, WireSize: g.wire}
	}
	m.calls = append(m.calls, c)
	switch {
	case m.closing:
		for _, g := range c.tags {
			g.end("ErrClosed", func(err error) bool { return errors.Is(err, ErrClosed) })
		}
	case m.refusing(time.Now()):
		m.sitOrRefuse(c)
	}
	go func() {
		results := m.b.Submit(ctx, entries)
		m.mu.Lock()
		c.results, c.returned = results, true
		m.mu.Unlock()
	}()
}

func (m *model) cancelCall(c *modelCall) {
	if c.returned || !c.cancelledAt.IsZero() {
		return
	}
	c.cancelledAt = time.Now()
	for _, g := range c.tags {
		if g.state == tagNew || g.state == tagWaiting {
			g.end("context.Canceled", func(err error) bool { return errors.Is(err, context.Canceled) })
		}
	}
	c.cancel()
}

func (m *model) close(force bool) {
	m.closing = true
	for _, c := range m.calls {
		for _, g := range c.tags {
			if g.state == tagNew || g.state == tagWaiting {
				g.end("ErrClosed", func(err error) bool { return errors.Is(err, ErrClosed) })
			}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.closed = make(chan error, 1)
	go func() { m.closed <- m.b.Close(ctx) }()
	if force {
		synctest.Wait()
		cancel()
		for _, f := range m.flights {
			m.model(f, make([]error, len(f.tags)), errMissing)
		}
		m.flights = nil
	} else {
		context.AfterFunc(m.t.Context(), cancel)
	}
}

func (g *tag) end(is string, want func(error) bool) {
	g.state, g.wantIs, g.want = tagDone, is, want
}

func (g *tag) endWith(err error) {
	g.end("exactly "+errText(err), func(got error) bool { return got == err })
}

func errText(err error) string {
	if err == nil {
		return "nil"
	}
	return err.Error()
}

func (m *model) randomResults(n int) []error {
	r := m.rng
	errs := make([]error, n)
	one := func() error {
		e := &classify.Error{Service: "test"}
		switch r.IntN(10) {
		case 0, 1:
			e.Class = classify.Permanent
		case 2:
			e.Class = classify.Config
		case 3, 4:
			e.Class = classify.Throttled
			if r.IntN(2) == 0 {
				e.RetryAfter = time.Duration(r.IntN(200)) * time.Millisecond
			}
		case 5:
			e.Code = CodeHeld
		case 6: // pauses nothing, but is a floor for its entry
			e.RetryAfter = time.Duration(r.IntN(200)) * time.Millisecond
		}
		return e
	}
	switch r.IntN(3) {
	case 0: // all taken
	case 1: // the request failed
		e := one()
		for i := range errs {
			errs[i] = e
		}
	default:
		for i := range errs {
			if r.IntN(3) == 0 {
				errs[i] = one()
			}
		}
	}
	return errs
}

// answer lets a request come back, and says what must follow.
func (m *model) answer(f *flight, results func(n int) []error) {
	errs := results(len(f.tags))
	m.flights = slices.DeleteFunc(m.flights, func(o *flight) bool { return o == f })
	m.drawn = -1
	f.answer <- errs
	synctest.Wait()
	m.model(f, errs, nil)
}

// model applies the rules to a request that came back with errs, each nil replaced by all.
func (m *model) model(f *flight, errs []error, all error) {
	now := time.Now()
	gaveUp := map[string]bool{}
	failures := make([]*classify.Error, len(errs))
	for i, err := range errs {
		if err != nil || all != nil {
			failures[i] = classify.Of(errors.Join(all, err))
		}
		if e := failures[i]; e != nil && e.Class == classify.Throttled && now.Add(e.RetryAfter).After(m.floor) {
			m.floor = now.Add(e.RetryAfter)
		}
	}
	for i, g := range f.tags {
		e := failures[i]
		switch {
		case g.state == tagDone: // abandoned: nobody cares
		case e == nil:
			g.end("nil", func(err error) bool { return err == nil })
		case e.Class == classify.Permanent, !g.call.cancelledAt.IsZero(), m.closing:
			g.endWith(e)
		case gaveUp[g.group] && e.Class != classify.Config:
			g.end("held", isHeld)
			m.withheld++
		default:
			at, again := m.retryAt(g, e, now)
			if again {
				g.state, g.retryAt, g.last = tagWaiting, at, e
				m.retried++
				continue
			}
			g.endWith(e)
			if g.group == "" || gaveUp[g.group] {
				continue
			}
			gaveUp[g.group] = true
			m.hold(g.group, f.tags) // not what failed in this request before it
		}
	}
	m.giveChances(now)
	if m.refusing(now) && !m.closing {
		for _, c := range m.calls {
			if slices.ContainsFunc(c.tags, func(g *tag) bool { return g.state == tagNew || g.state == tagWaiting }) {
				m.sitOrRefuse(c)
			}
		}
	}
}

// sitOrRefuse lets a call wait out a long pause if not half of the calls that there can be do so already.
func (m *model) sitOrRefuse(c *modelCall) {
	sitting := 0
	for _, o := range m.calls {
		if o.sits && slices.ContainsFunc(o.tags, func(g *tag) bool { return g.state != tagDone }) {
			sitting++
		}
	}
	if !c.sits && sitting >= m.opts.MaxInFlight/2 {
		m.refuse(c)
		return
	}
	c.sits = true
}

// hold ends what waited, or waited for room, behind an entry of group that was given up.
func (m *model) hold(group string, but []*tag) {
	for _, c := range m.calls {
		for _, o := range c.tags {
			if o.group == group && (o.state == tagNew || o.state == tagWaiting) && !slices.Contains(but, o) {
				o.end("held", isHeld)
				m.withheld++
			}
		}
	}
}

// refusing reports whether the service asks for more time than more than half of the calls may wait.
func (m *model) refusing(now time.Time) bool {
	return m.opts.MaxElapsedTime > 0 && m.opts.MaxInFlight > 0 && m.opts.ManyQueues && m.floor.Sub(now) > m.opts.MaxElapsedTime
}

// refuse ends what has not left of c.
func (m *model) refuse(c *modelCall) {
	for _, g := range c.tags {
		switch {
		case g.state != tagNew && g.state != tagWaiting:
			continue
		case g.last != nil:
			g.endWith(g.last)
		default:
			g.end("paused", func(err error) bool {
				e := classify.Of(err)
				return e != nil && e.Code == "paused" && e.Class == classify.Throttled && e.RetryAfter > m.opts.MaxElapsedTime
			})
		}
		m.shutOut++
	}
}

func isHeld(err error) bool {
	e := classify.Of(err)
	return e != nil && e.Code == CodeHeld && e.Class == classify.Transient && e.Service == service
}

// retryAt is the retry rule once more, from its description.
func (m *model) retryAt(g *tag, e *classify.Error, now time.Time) (time.Time, bool) {
	if e.Class != classify.Transient && e.Class != classify.Throttled {
		return time.Time{}, false
	}
	if m.drawn < 0 {
		m.fatalf("no draw for a retry")
	}
	top := m.opts.InitialInterval
	for range g.tries {
		top = min(2*top, m.opts.MaxInterval)
	}
	wait := max(time.Duration(m.drawn*float64(top)), e.RetryAfter)
	if e.Code != CodeHeld {
		if g.tries++; m.opts.MaxRetries > 0 && g.tries > m.opts.MaxRetries {
			return time.Time{}, false
		}
	}
	if m.opts.MaxElapsedTime > 0 {
		left := m.opts.MaxElapsedTime - now.Sub(g.first)
		paused := m.b.epoch.Add(m.b.pace.pausedUntil).Sub(now)
		if left <= 0 || e.RetryAfter > left || m.floor.Sub(now) > left || paused > left {
			return time.Time{}, false
		}
		wait = min(wait, left)
	}
	return now.Add(wait), true
}

// drain lets everything end well, and checks that nothing is left.
func (m *model) drain() {
	for range 2000 {
		if m.t.Failed() {
			break
		}
		open := slices.ContainsFunc(m.calls, func(c *modelCall) bool { return !c.returned })
		if !open && len(m.flights) == 0 {
			break
		}
		if len(m.flights) > 0 {
			m.answer(m.flights[0], func(n int) []error { return make([]error, n) })
		} else {
			m.sleep(25 * time.Millisecond)
		}
		m.settleStep()
	}
	for _, c := range m.calls {
		if !c.returned && !m.t.Failed() {
			m.fatalf("a Submit does not return")
		}
		c.cancel()
	}
	if !m.t.Failed() {
		m.checkEmpty()
	}
	for _, f := range m.flights {
		f.answer <- make([]error, len(f.tags))
	}
	if m.closing {
		<-m.closed
	} else {
		ctx, cancel := context.WithCancel(context.Background())
		if m.t.Failed() {
			cancel()
		}
		if err := m.b.Close(ctx); err != nil && !m.t.Failed() {
			m.fatalf("Close = %v", err)
		}
		cancel()
	}
}

func (m *model) fatalf(format string, args ...any) {
	m.t.Helper()
	m.t.Errorf("seed %d, step %d: "+format, append([]any{m.seed, m.step}, args...)...)
}
