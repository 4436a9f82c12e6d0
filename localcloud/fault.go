package localcloud

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// Call is one request as the conditions of faults see it.
type Call struct {
	Action   string      // "SendMessageBatch", "Publish"; as each cloud's documentation lists them
	Ordinal  int         // the how-manieth request of this action it is, from 1
	Resource string      // name of the queue or topic; "" when the request names none
	Header   http.Header // of the request; not to be changed
	Entries  []Entry     // what the request sends; nil for an action that sends nothing
}

// Entry is one message of a Call.
type Entry struct {
	Index           int               // position in the request, from 0
	ID              string            // SQS: the batch entry's Id; "" elsewhere
	Body            []byte            // SQS: the body, Pub/Sub: the data, decoded. Not to be changed or kept
	Attributes      map[string]string // string values by name
	Group           string            // SQS: MessageGroupId, Pub/Sub: the ordering key
	DeduplicationID string            // SQS only
}

// Fault is one line of a script: when to strike, and what to do. It strikes when all its
// conditions hold; without any it strikes at every request. The parts of the effect that are set
// all apply; when several faults strike one request, waits add up, entry faults and headers
// accumulate, and of the rest the first added wins.
type Fault struct {
	// Name appears in Fired and Armed, and in a default error message. It may be empty.
	Name string

	// Action restricts the fault to one action; "" is any.
	Action string
	// Resource restricts it to one queue or topic, by name; "" is any.
	Resource string
	// Nth is the ordinal it strikes at, counted from 1 over the requests of the same action since
	// the cloud was made; 0 is any.
	Nth int
	// Every strikes at each ordinal that Every divides; 0 is any.
	Every int
	// If is asked last; nil holds. It is called with the Faults' lock held, so it must not call
	// back into it.
	If func(*Call) bool
	// Chance is the probability of striking once all else holds, drawn from the script's seeded
	// generator; 0 is always.
	Chance float64
	// Times is how often it strikes before it is used up; 0 is without end.
	Times int

	Effect
}

// Effect is what happens to a request. The zero value is nothing.
type Effect struct {
	// Wait delays the request before anything is done with it.
	Wait time.Duration

	// Stored carries the request out before Error, Reply, Cut, Stall or Endless take the place of
	// its own reply. Stored with Cut is the lost reply.
	Stored bool

	// Error replies with an error of the service, in its own shape.
	Error *ErrorReply
	// Reply replies with something else: HTML, a redirect, half a document.
	Reply *Reply
	// Cut ends the connection without a byte of reply: FIN, or RST when Reset is set too (TCP only).
	Cut, Reset bool
	// Stall never replies; it ends when the client goes or the server is closed.
	Stall bool
	// Endless sends status 200 (or Reply's, or Error's) and a body that does not end until the
	// client goes.
	Endless bool

	// Truncate cuts the body of whatever reply goes out in half; its Content-Length is right.
	Truncate bool
	// CutReply sends the reply's header and half its body, then cuts the connection.
	CutReply bool
	// Trickle waits this long between the header of the reply and its body.
	Trickle time.Duration

	// Header is set on whatever reply goes out (Retry-After, for one).
	Header http.Header
	// Skew is by how much the service's clock is ahead of the cloud's own, for this request: it
	// moves the Date header and the check of the signature's time.
	Skew time.Duration

	// Entries are faults of single entries.
	Entries []EntryFault
}

// ErrorReply is an error of the service.
type ErrorReply struct {
	Status  int     // HTTP status; 0 is the code's usual one
	Code    string  // the code without any namespace: "AccessDenied", "RESOURCE_EXHAUSTED"
	Message string  // "" is a text that names the fault
	Dialect Dialect // how an SQS code is spelled; Pub/Sub has one way only
}

// Dialect is a way in which SQS's error codes have been seen to arrive.
type Dialect uint8

// The dialects.
const (
	Namespace    Dialect = iota // {"__type":"com.amazonaws.sqs#Code"}, with the x-amzn-query-error header
	Bare                        // {"__type":"Code"}
	Older                       // {"__type":"AWS.SimpleQueueService.Code"}
	HeaderOnly                  // {"message":…}; the code only in x-amzn-query-error: Code;Sender
	XML                         // <ErrorResponse><Error><Code>Code</Code>, as the query protocol
	Coral                       // {"__type":"com.amazon.coral.service#Code"}
	UpperMessage                // as Namespace without the header, the text under "Message"
	CodeField                   // {"code":"Code"}, no __type
)

// Reply is a reply as it goes on the wire.
type Reply struct {
	Status int         // 0 is 200
	Header http.Header // Content-Type and what else is wanted
	Body   []byte
}

// HTML is a reply of the kind that proxies and load balancers give.
func HTML(status int) *Reply {
	return &Reply{
		Status: status,
		Header: http.Header{"Content-Type": {"text/html"}},
		Body:   fmt.Appendf(nil, "<html><head><title>%d %s</title></head><body>proxy</body></html>\n", status, http.StatusText(status)),
	}
}

// Redirect is a 307 to location.
func Redirect(location string) *Reply {
	return &Reply{Status: http.StatusTemporaryRedirect, Header: http.Header{"Location": {location}}}
}

// EntryFault is a fault of single entries of a request that is otherwise carried out.
type EntryFault struct {
	// If chooses the entries it strikes; nil chooses the one at Index.
	If    func(*Entry) bool
	Index int

	// Do is what happens to them.
	Do EntryEffect

	// Code, Message and SenderFault are those of a Refuse, Both or FailTwice.
	Code, Message string
	SenderFault   bool
}

// EntryEffect is what an EntryFault does. Pub/Sub, whose replies have no per-entry results,
// understands Refuse (INVALID_ARGUMENT for the request that holds the entry) and the Drops (a
// message id too few).
type EntryEffect uint8

// The entry effects.
const (
	Refuse            EntryEffect = iota // not stored, listed under Failed with Code
	Drop                                 // stored, in neither list
	DropUnstored                         // not stored, in neither list
	Twice                                // stored, listed twice under Successful
	FailTwice                            // not stored, listed twice under Failed
	Both                                 // stored, listed under Successful and under Failed
	Unknown                              // stored, listed under an Id that nobody sent
	ExtraUnknown                         // stored and listed, and next to it an Id that nobody sent
	WrongMD5                             // stored, listed with the MD5 of something else
	WrongAttributeMD5                    // stored, listed with a wrong MD5 of its attributes
	Swap                                 // stored; its result and the next one's change places, MD5 and all but the Id
)

// Fired is one strike of a fault.
type Fired struct {
	Name     string // the fault's
	Action   string // the request's
	Ordinal  int
	Resource string
}

// Faults is a script. The zero value is empty and ready.
type Faults struct {
	mu    sync.Mutex // guards the fields below
	rules []*rule
	fired []Fired
	rand  *rand.Rand
}

type rule struct {
	Fault
	struck int
}

// Seed makes the draws of Chance repeatable. Without it they are seeded with 1.
func (f *Faults) Seed(seed uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rand = rand.New(rand.NewPCG(seed, seed))
}

// Add appends faults to the script.
func (f *Faults) Add(faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range faults {
		f.rules = append(f.rules, &rule{Fault: x})
	}
}

// Clear takes every fault away; what has fired stays on record.
func (f *Faults) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

// Fired returns every strike so far, in order.
func (f *Faults) Fired() []Fired {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Fired(nil), f.fired...)
}

// Armed returns the faults that may still strike, with Times counted down to what is left. A fault
// with an Nth that has struck is used up.
func (f *Faults) Armed() []Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	var armed []Fault
	for _, r := range f.rules {
		x := r.Fault
		if x.Times > 0 {
			x.Times -= r.struck
		}
		armed = append(armed, x)
	}
	return armed
}

// Any reports whether a fault is armed. Clouds ask it before they build a Call's entries.
func (f *Faults) Any() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.rules) > 0
}

// Take returns what is to happen to c, counts it, and uses up what it took. Clouds call it once
// for each request.
func (f *Faults) Take(c *Call) Effect {
	f.mu.Lock()
	defer f.mu.Unlock()
	var e Effect
	keep := f.rules[:0]
	for _, r := range f.rules {
		if f.strikesLocked(r, c) {
			r.struck++
			f.fired = append(f.fired, Fired{Name: r.Name, Action: c.Action, Ordinal: c.Ordinal, Resource: c.Resource})
			e.merge(r.Fault)
			if r.Nth > 0 && r.Action != "" || r.Times > 0 && r.struck >= r.Times {
				continue // ordinals don't come back
			}
		}
		keep = append(keep, r)
	}
	clear(f.rules[len(keep):])
	f.rules = keep
	return e
}

func (f *Faults) strikesLocked(r *rule, c *Call) bool {
	switch {
	case r.Action != "" && r.Action != c.Action,
		r.Resource != "" && r.Resource != c.Resource,
		r.Nth > 0 && r.Nth != c.Ordinal,
		r.Every > 0 && c.Ordinal%r.Every != 0,
		r.If != nil && !r.If(c):
		return false
	}
	if r.Chance > 0 {
		if f.rand == nil {
			f.rand = rand.New(rand.NewPCG(1, 1))
		}
		return f.rand.Float64() < r.Chance
	}
	return true
}

// merge adds what x does to e.
func (e *Effect) merge(x Fault) {
	e.Wait += x.Wait
	e.Trickle += x.Trickle
	e.Skew += x.Skew
	e.Truncate = e.Truncate || x.Truncate
	e.CutReply = e.CutReply || x.CutReply
	e.Entries = append(e.Entries, x.Entries...)
	if len(x.Header) > 0 {
		h := x.Header.Clone()
		maps.Copy(h, e.Header) // the first added wins
		e.Header = h
	}
	if e.terminal() || !x.terminal() {
		return
	}
	e.Stored, e.Reply, e.Cut, e.Reset, e.Stall, e.Endless = x.Stored, x.Reply, x.Cut, x.Reset, x.Stall, x.Endless
	if x.Error != nil {
		r := *x.Error
		if r.Message == "" {
			r.Message = "scripted fault"
			if x.Name != "" {
				r.Message += ": " + x.Name
			}
		}
		e.Error = &r
	}
}

// terminal reports whether e replaces the request's own reply.
func (e *Effect) terminal() bool {
	return e.Error != nil || e.Reply != nil || e.Cut || e.Reset || e.Stall || e.Endless
}

// On returns the faults that strike entry, in order. Nil when there are none.
func (e *Effect) On(entry *Entry) []EntryFault {
	var on []EntryFault
	for _, x := range e.Entries {
		if x.If != nil && x.If(entry) || x.If == nil && x.Index == entry.Index {
			on = append(on, x)
		}
	}
	return on
}
