package localpubsub

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

// DefaultProject is the project of bare topic and subscription names that exist in no project.
const DefaultProject = "local"

// DefaultPullWait is how long a Pull without returnImmediately waits for a first message.
const DefaultPullWait = 30 * time.Second

// Options configure a PubSub. The zero value is usable.
type Options struct {
	// Project is where [PubSub.CreateTopic] and [PubSub.CreateSubscription] put a bare name. Zero
	// means DefaultProject. Requests name their project themselves.
	Project string

	// Tokens are the bearer tokens that are accepted; any other, or none, is answered 401
	// UNAUTHENTICATED. None means that nobody asks, as in an emulator. SetTokens changes them.
	Tokens []string

	// AutoCreate makes a topic when something is first published to it. Its name is still checked.
	AutoCreate bool

	// DiscardData keeps sizes and counts of messages, but not the messages, for runs without end:
	// Published stays empty, there is no RequestLog, and subscriptions get nothing.
	DiscardData bool

	// Reject plays the part of a schema on every topic that has no Reject of its own; see TopicOptions.
	Reject func(*StoredMessage) bool

	// Permit reports whether TestIamPermissions grants permission on the topic with that full name.
	// Nil grants every permission that begins with "pubsub.topics.".
	Permit func(topic, permission string) bool

	// Now is the service's clock: publish times, ack deadlines, gauges. Nil means time.Now. Waiting
	// (latency, pulls) is real time, or a bubble's, whatever Now says.
	Now func() time.Time

	// Latency is how long a request takes before it is carried out. Nil means none. A request whose
	// client goes meanwhile is not carried out.
	Latency func(*localcloud.Call) time.Duration

	// PullWait is how long a Pull without returnImmediately waits for a first message before it
	// answers with none. Zero means DefaultPullWait.
	PullWait time.Duration

	// Observe is called for each request once it is decoded, before any fault, on its goroutine. It
	// must not keep the data. Nil means nobody looks.
	Observe func(*localcloud.Call)
}

// PubSub is the service. It implements http.Handler.
type PubSub struct {
	// Faults is the script. Add to it at any time.
	Faults localcloud.Faults

	o Options

	mu       sync.Mutex // guards the fields below; never held while waiting, reading or writing
	tokens   []string
	topics   map[name]*topic
	subs     map[name]*subscription
	ordinals map[string]int // requests by action; "" is all
	refused  map[string]int // of requests that reached no topic
	lastID   uint64         // of messages
	lastAck  uint64         // of ack ids
}

// New returns a PubSub without topics.
func New(o Options) *PubSub {
	o.Project = cmp.Or(o.Project, DefaultProject)
	o.PullWait = cmp.Or(o.PullWait, DefaultPullWait)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &PubSub{
		o:        o,
		tokens:   slices.Clone(o.Tokens),
		topics:   map[name]*topic{},
		subs:     map[name]*subscription{},
		ordinals: map[string]int{},
		refused:  map[string]int{},
		lastID:   10_000_000_000_000_000, // the service's ids have about this many digits
	}
}

// SetTokens replaces the accepted bearer tokens; none turns the check off.
func (p *PubSub) SetTokens(tokens ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tokens = slices.Clone(tokens)
}

// name is the full name of a topic or subscription.
type name struct{ project, kind, id string }

const (
	kindTopic        = "topics"
	kindSubscription = "subscriptions"
)

func (n name) String() string { return "projects/" + n.project + "/" + n.kind + "/" + n.id }

// parseName takes "projects/P/topics/T" apart.
func parseName(s, kind string) (name, bool) {
	parts := strings.Split(s, "/")
	if len(parts) != 4 || parts[0] != "projects" || parts[2] != kind {
		return name{}, false
	}
	return name{parts[1], kind, parts[3]}, true
}

// TopicPath is the full name of a topic, "projects/P/topics/T".
func TopicPath(project, topic string) string { return name{project, kindTopic, topic}.String() }

// SubscriptionPath is the full name of a subscription, "projects/P/subscriptions/S".
func SubscriptionPath(project, subscription string) string {
	return name{project, kindSubscription, subscription}.String()
}

// nameOf is the name that a caller of the Go side means: a full one, or a bare one in Options.Project.
func (p *PubSub) nameOf(s, kind string) name {
	if n, ok := parseName(s, kind); ok {
		return n
	}
	return name{p.o.Project, kind, s}
}

// find looks up what a caller of the Go side means: a bare name in Options.Project first, then in
// any project.
func find[T any](p *PubSub, m map[name]*T, s, kind string) *T {
	n := p.nameOf(s, kind)
	if x := m[n]; x != nil || n.id != s {
		return x
	}
	for _, other := range sortedNames(m) {
		if other.id == s {
			return m[other]
		}
	}
	return nil
}

func sortedNames[T any](m map[name]*T) []name {
	return slices.SortedFunc(maps.Keys(m), func(a, b name) int {
		return cmp.Or(cmp.Compare(a.project, b.project), cmp.Compare(a.id, b.id))
	})
}

func (p *PubSub) findTopicLocked(s string) *topic { return find(p, p.topics, s, kindTopic) }
func (p *PubSub) findSubLocked(s string) *subscription {
	return find(p, p.subs, s, kindSubscription)
}

// notFound is the service's text; it names the last segment only.
func notFound(n name) *apiError {
	return refuse("NOT_FOUND", "Resource not found (resource=%s).", n.id)
}

func alreadyExists(n name) *apiError {
	return refuse("ALREADY_EXISTS", "Resource already exists in the project (resource=%s).", n.id)
}

// errorOf keeps a nil *apiError from becoming an error that isn't nil.
func errorOf(e *apiError) error {
	if e == nil {
		return nil
	}
	return fmt.Errorf("localpubsub: %w", e)
}
