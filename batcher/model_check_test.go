package batcher

import (
	"slices"
	"testing/synctest"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

// settleStep waits until nothing moves, brings the model up to date with what it can see, and
// checks every invariant.
func (m *model) settleStep() {
	m.t.Helper()
	m.step++
	synctest.Wait()
	now := time.Now()

	m.mu.Lock()
	landed := m.landed
	m.landed = nil
	m.mu.Unlock()

	// A cancelled Submit gives up on what is in flight after its grace.
	for _, c := range m.calls {
		if !c.cancelledAt.IsZero() && now.Sub(c.cancelledAt) >= m.opts.CancelGrace {
			for _, g := range c.tags {
				if g.state == tagSent {
					g.end("outcome_unknown", func(err error) bool { return codeOf(err) == "outcome_unknown" })
				}
			}
		}
	}

	m.expire(now)
	newly := m.admitted(landed, now)
	m.flights = append(m.flights, landed...)
	for _, f := range landed {
		m.checkRequest(f, now)
	}
	if len(landed) > 0 && len(m.flights) > m.b.pace.window {
		m.fatalf("%d requests in flight, window is %d", len(m.flights), m.b.pace.window)
	}
	m.giveChances(now)
	m.checkResults()
	if m.closing && len(m.calls) == 0 {
		m.flights = nil // nobody awaits them: cancelled
	}
	m.checkCeilings(newly)
	m.checkNothingIsLate(now)
	m.checkInside()
}

func codeOf(err error) string {
	if e := classify.Of(err); e != nil {
		return e.Code
	}
	return ""
}

// expire ends the retries that the queue has not sent in their time, though it could have been that of
// their group too, and what waits behind them.
func (m *model) expire(now time.Time) {
	if m.opts.MaxElapsedTime == 0 {
		return
	}
	groups := map[string]bool{}
	for _, c := range m.calls {
		for _, g := range c.tags {
			if g.state != tagWaiting || g.retryAt.IsZero() || g.group != "" && m.inFlight(g.group) || now.Sub(g.first) <= m.opts.MaxElapsedTime {
				continue
			}
			if g.chance.IsZero() {
				g.chance = g.retryAt // no step in between
			}
			if !g.chance.Before(now) {
				continue // it has come to be the next just now
			}
			m.expired++
			if g.group == "" {
				g.endWith(g.last)
				continue
			}
			// Which of a group's retries was the first, the model can't always tell.
			groups[g.group] = true
			last := g.last
			g.end("its last failure, or held", func(err error) bool { return err == last || isHeld(err) })
		}
	}
	for g := range groups {
		m.hold(g, nil)
	}
}

// giveChances notes since when retries could leave.
func (m *model) giveChances(now time.Time) {
	for _, c := range m.calls {
		for _, g := range c.tags {
			switch {
			case g.state != tagWaiting || g.retryAt.IsZero() || g.retryAt.After(now) || g.group != "" && m.inFlight(g.group):
				g.chance = time.Time{}
			case g.chance.IsZero():
				g.chance = now
			}
		}
	}
}

// admitted finds out which entries have been admitted in this step.
func (m *model) admitted(landed []*flight, now time.Time) (newly []*tag) {
	m.b.mu.Lock()
	defer m.b.mu.Unlock()
	admit := func(g *tag) {
		if g.state == tagNew {
			g.state, g.step, g.since = tagWaiting, m.step, now
			newly = append(newly, g)
		}
	}
	for c := range m.b.calls.all {
		mc := c.sub.entries[0].Value.call
		for i := range c.next {
			admit(mc.tags[i])
		}
		if c.next < c.len {
			m.blocked++
		}
	}
	for _, f := range landed {
		for _, g := range f.tags {
			admit(g)
		}
	}
	return newly
}

// before reports whether a was certainly admitted before b.
func before(a, b *tag) bool {
	return a.call == b.call && a.index < b.index || a.call != b.call && a.step < b.step
}

func (m *model) checkRequest(f *flight, now time.Time) {
	m.t.Helper()
	o := m.opts
	if len(f.tags) == 0 {
		m.fatalf("an empty request")
	}
	if len(f.tags) > o.MaxEntries {
		m.fatalf("%d entries, limit %d", len(f.tags), o.MaxEntries)
	}
	bytes, wire := 0, o.RequestWireBytes
	groups := map[string]int{}
	old, retry := false, false
	for i, g := range f.tags {
		bytes += g.size
		wire += g.wire
		if g.state != tagWaiting {
			m.fatalf("an entry in state %d is sent", g.state)
		}
		if g.retryAt.After(now) {
			m.fatalf("a retry leaves %v early", g.retryAt.Sub(now))
		}
		if limit := m.opts.MaxElapsedTime; limit > 0 && !g.first.IsZero() && now.Sub(g.first) > limit && !g.chance.IsZero() && g.chance.Before(now) {
			m.fatalf("a retry leaves %v after its first send, limit %v", now.Sub(g.first), limit)
		}
		old = old || now.Sub(g.since) >= o.Linger
		retry = retry || !g.retryAt.IsZero()
		groups[g.group]++
		if g.group != "" {
			for _, other := range m.flights {
				if other != f && slices.ContainsFunc(other.tags, func(h *tag) bool { return h.group == g.group }) {
					m.fatalf("group %s has two requests in flight", g.group)
				}
			}
			for _, c := range m.calls {
				for _, h := range c.tags {
					if h.group == g.group && h.state == tagWaiting && h.retryAt.After(now) {
						m.fatalf("group %s does not wait for the retry of entry %d", g.group, h.index)
					}
					if h.group == g.group && h.state == tagWaiting && !slices.Contains(f.tags[:i], h) && h != g &&
						(before(h, g) || !h.retryAt.IsZero() && g.retryAt.IsZero()) {
						m.fatalf("group %s: entry %d passes entry %d", g.group, g.index, h.index)
					}
				}
			}
		}
	}
	if o.MaxBytes > 0 && bytes > o.MaxBytes && len(f.tags) > 1 {
		m.fatalf("%d bytes, limit %d", bytes, o.MaxBytes)
	}
	if o.MaxWireBytes > 0 && wire > o.MaxWireBytes && len(f.tags) > 1 {
		m.fatalf("%d wire bytes, limit %d", wire, o.MaxWireBytes)
	}
	if o.OneGroupPerRequest && len(groups) > 1 {
		m.fatalf("groups %v in one request", groups)
	}
	for g, n := range groups {
		if o.StrictOrder && g != "" && n > 1 {
			m.fatalf("%d entries of group %s in one request", n, g)
		}
	}
	if m.floor.After(now) {
		m.fatalf("a request leaves %v before Retry-After", m.floor.Sub(now))
	}

	// Full: no entry that exists is sure to fit.
	full := len(f.tags) == o.MaxEntries ||
		o.MaxBytes > 0 && bytes+25 > o.MaxBytes ||
		o.MaxWireBytes > 0 && wire+12 > o.MaxWireBytes ||
		o.OneGroupPerRequest && o.StrictOrder && f.tags[0].group != ""
	if !full && !old && !retry && !m.nobodyLeft() {
		m.fatalf("a request of %d entries leaves for no reason", len(f.tags))
	}
	for _, g := range f.tags {
		if g.state == tagWaiting {
			m.sent++
		}
		g.state = tagSent
		if g.first.IsZero() {
			g.first = now
		}
		if !g.call.cancelledAt.IsZero() || m.closing {
			m.fatalf("an entry of a cancelled call is sent")
		}
	}
}

// nobodyLeft reports whether the calls that wait with everything admitted were as many as there
// can be, in the course of this step.
func (m *model) nobodyLeft() bool {
	if m.opts.MaxInFlight == 0 {
		return false
	}
	n := 0
	for _, c := range m.calls {
		open := slices.ContainsFunc(c.tags, func(g *tag) bool { return g.state != tagDone })
		if open && !slices.ContainsFunc(c.tags, func(g *tag) bool { return g.state == tagNew }) {
			n++
		}
	}
	return n >= m.opts.MaxInFlight
}

// checkResults compares what Submit returned with what it must return, and when.
func (m *model) checkResults() {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.calls {
		open := slices.ContainsFunc(c.tags, func(g *tag) bool { return g.state != tagDone })
		if open == c.returned {
			m.fatalf("Submit has returned: %v, and has entries without a result: %v", c.returned, open)
			return
		}
		if !c.returned {
			continue
		}
		if len(c.results) != len(c.tags) {
			m.fatalf("%d results for %d entries", len(c.results), len(c.tags))
			return
		}
		for i, g := range c.tags {
			if !g.want(c.results[i]) {
				m.fatalf("entry %d of group %q: result %v, want %s", i, g.group, c.results[i], g.wantIs)
			}
		}
	}
	// What is settled needs no second look.
	m.calls = slices.DeleteFunc(m.calls, func(c *modelCall) bool {
		if c.returned {
			c.cancel()
		}
		return c.returned
	})
}

// waiting returns what the ceilings limit.
func (m *model) waiting() (entries, bytes int, tenants map[string]int) {
	tenants = map[string]int{}
	for _, c := range m.calls {
		for _, g := range c.tags {
			if g.state == tagWaiting {
				entries++
				bytes += g.size
				tenants[g.tenant]++
			}
		}
	}
	return entries, bytes, tenants
}

func (m *model) checkCeilings(newly []*tag) {
	m.t.Helper()
	o := m.opts
	entries, bytes, tenants := m.waiting()
	if w := m.b.waiting; w.entries != entries || w.bytes != bytes {
		m.fatalf("%d entries of %d bytes are counted as waiting, want %d of %d", w.entries, w.bytes, entries, bytes)
	}
	for _, g := range newly {
		if g.state != tagWaiting {
			continue
		}
		if entries > o.QueueMax || bytes > o.QueueMaxBytes && entries > 1 || tenants[g.tenant] > o.QueueTenantMax {
			m.fatalf("admitted above a ceiling: %d entries, %d bytes, %d of the tenant", entries, bytes, tenants[g.tenant])
		}
	}
	// Nobody waits for room that is there.
	fits := func(g *tag) bool {
		return entries == 0 || entries < o.QueueMax && bytes+g.size <= o.QueueMaxBytes
	}
	stuck, someoneMust := 0, false
	for _, c := range m.calls {
		i := slices.IndexFunc(c.tags, func(g *tag) bool { return g.state == tagNew })
		if i < 0 || tenants[c.tags[i].tenant] >= o.QueueTenantMax {
			continue
		}
		stuck++
		someoneMust = someoneMust || !fits(c.tags[i])
	}
	if stuck > 0 && !someoneMust {
		m.fatalf("%d calls wait for room that is there", stuck)
	}
}

// checkNothingIsLate: whatever may leave has left.
func (m *model) checkNothingIsLate(now time.Time) {
	m.t.Helper()
	if len(m.flights) >= m.b.pace.window || m.closing || m.b.now() < m.b.pace.pausedUntil {
		return
	}
	type heap struct {
		entries, bytes, wire int
		late                 bool
	}
	heaps := map[string]*heap{} // by what can share a request
	seen := map[string]bool{}
	for _, c := range m.calls {
		for _, g := range c.tags {
			if g.state != tagWaiting || g.retryAt.After(now) || g.group != "" && m.groupBusy(g.group, now) {
				continue
			}
			key := ""
			if m.opts.OneGroupPerRequest {
				key = g.group
			}
			h := heaps[key]
			if h == nil {
				h = &heap{}
				heaps[key] = h
			}
			h.late = h.late || now.Sub(g.since) >= m.opts.Linger || !g.retryAt.IsZero()
			if m.opts.StrictOrder && g.group != "" && seen[g.group] {
				continue
			}
			seen[g.group] = true
			h.entries++
			h.bytes += g.size
			h.wire += g.wire
		}
	}
	for key, h := range heaps {
		// With StrictOrder only heads count, and which one that is the model need not know.
		full := h.entries >= m.opts.MaxEntries || !m.opts.StrictOrder &&
			(m.opts.MaxBytes > 0 && h.bytes >= m.opts.MaxBytes ||
				m.opts.MaxWireBytes > 0 && h.wire+m.opts.RequestWireBytes >= m.opts.MaxWireBytes)
		if h.late || full || m.nobodyLeft() {
			m.fatalf("%d entries (%q) may leave and have not: lingered %v, full %v, nobody left %v", h.entries, key, h.late, full, m.nobodyLeft())
		}
	}
}

func (m *model) groupBusy(group string, now time.Time) bool {
	if m.inFlight(group) {
		return true
	}
	inGroup := func(g *tag) bool { return g.group == group }
	for _, c := range m.calls {
		for _, g := range c.tags {
			if inGroup(g) && g.state == tagWaiting && g.retryAt.After(now) {
				return true
			}
		}
	}
	return false
}

func (m *model) inFlight(group string) bool {
	for _, f := range m.flights {
		if slices.ContainsFunc(f.tags, func(g *tag) bool { return g.group == group }) {
			return true
		}
	}
	return false
}

// checkInside holds what the Batcher derives against what it derives it from.
func (m *model) checkInside() {
	m.t.Helper()
	b := m.b
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, a := range b.alarms {
		if a.pos != i || i > 0 && b.alarms[(i-1)/2].at > a.at {
			m.fatalf("alarm %d is out of place", i)
		}
	}
	for i := range b.pools {
		p := &b.pools[i]
		var sum load
		due := 0
		for s := range p.seats.all {
			if s.lanes.len == 0 {
				m.fatalf("an empty seat")
			}
			for l := range s.lanes.all {
				sum.add(l.offer)
				if l.due {
					due++
				}
				if l.state != laneOpen || l.items.len == 0 || l.items.front().tenant != s.tenant {
					m.fatalf("a lane sits where it does not belong")
				}
			}
		}
		if sum != p.load || due != p.due {
			m.fatalf("pool %d says %v, %d due; its lanes %v, %d", i, p.load, p.due, sum, due)
		}
	}
	if b.gauge.max > 0 && b.readyLocked(b.now()) && !b.inGauge.linked() {
		m.fatalf("the gauge does not list a queue that lingers")
	}
	for c := range b.calls.all {
		for it := range c.items.all {
			couldLeave := it.lane.group == "" || it.lane.state != laneHeld && it.lane.items.front() == it
			if it.state != itemSent && it.expires != never && couldLeave && it.retry.at == never && it.lane.alarm.at == never {
				m.fatalf("a retry waits without an alarm")
			}
		}
	}
	if b.roomy.len > 0 && !b.closed {
		m.fatalf("room is left over")
	}
	for _, t := range b.tenants {
		if t.users == 0 {
			m.fatalf("tenant %q has no users", t.name)
		}
	}
	if b.inFlight != len(m.flights) {
		m.fatalf("%d in flight, want %d", b.inFlight, len(m.flights))
	}
}

// checkEmpty: every way out gives everything back.
func (m *model) checkEmpty() {
	m.t.Helper()
	b := m.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting != (load{}) || b.calls.len+b.line.len+len(b.tenants)+len(b.groups)+len(b.alarms)+b.inFlight > 0 {
		m.fatalf("left over: %v waiting, %d calls, %d in line, %d tenants, %d groups, %d alarms, %d in flight",
			b.waiting, b.calls.len, b.line.len, len(b.tenants), len(b.groups), len(b.alarms), b.inFlight)
	}
	if n := b.gauge.awaiting.Load(); n != 0 {
		m.fatalf("the gauge counts %d", n)
	}
}
