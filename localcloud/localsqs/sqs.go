package localsqs

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

// What an SQS takes where its options say nothing.
const (
	DefaultRegion          = "us-east-1"
	DefaultAccount         = "000000000000"
	DefaultAccessKeyID     = "AKIALOCALCLOUD000000"
	DefaultSecretAccessKey = "localcloud-is-no-secret"
)

// maxRequestBytes bounds what is read of one request. A batch of MaxBatchBytes can grow sixfold by
// JSON escapes; the rest is for names and attributes.
const maxRequestBytes = 8 << 20

// Options configure an SQS. The zero value is usable.
type Options struct {
	// Region that a signature's scope must name. Zero means DefaultRegion.
	Region string

	// AccessKeyID and SecretAccessKey are the key that may sign. Both zero means the defaults.
	AccessKeyID, SecretAccessKey string
	// Credentials replaces the key by several, with tokens and expiry. SetCredentials changes them.
	Credentials []Credential
	// AnySigner turns the check of signatures off: a request without one is taken too.
	AnySigner bool

	// AutoCreate makes a queue on its first use, FIFO when its name ends in ".fifo", with the
	// service's default attributes.
	AutoCreate bool

	// MaxBatchBytes is the most that a batch's messages may have together. Zero means the constant
	// MaxBatchBytes; 262,144 is what the service had until 2025, and what other implementations have.
	MaxBatchBytes int

	// DiscardBodies keeps sizes and counts of messages, but not their bodies, for runs without end.
	// What is received then is an empty body.
	DiscardBodies bool

	// Now is the service's clock. Nil means time.Now. Waiting (latency, long polls) is real time, or
	// a bubble's, whatever Now says.
	Now func() time.Time

	// Latency is how long a request takes before it is carried out. Nil means none.
	Latency func(*localcloud.Call) time.Duration

	// Observe is called for each request once it is decoded, before any fault, on its goroutine. It
	// must not keep the bodies. Nil means nobody looks.
	Observe func(*localcloud.Call)
}

// SQS is the service. It implements http.Handler.
type SQS struct {
	// Faults is the script. Add to it at any time.
	Faults localcloud.Faults

	o Options

	mu          sync.Mutex // guards the fields below; never held while waiting, reading or writing
	credentials []Credential
	queues      map[string]*queue // by "account/name"
	ordinals    map[string]int    // requests by action; "" is all
	refused     map[string]int
}

// New returns an SQS without queues.
func New(o Options) *SQS {
	if o.Region == "" {
		o.Region = DefaultRegion
	}
	if o.AccessKeyID == "" && o.SecretAccessKey == "" {
		o.AccessKeyID, o.SecretAccessKey = DefaultAccessKeyID, DefaultSecretAccessKey
	}
	if o.Credentials == nil {
		o.Credentials = []Credential{{AccessKeyID: o.AccessKeyID, SecretAccessKey: o.SecretAccessKey}}
	}
	if o.MaxBatchBytes == 0 {
		o.MaxBatchBytes = MaxBatchBytes
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &SQS{
		o:           o,
		credentials: slices.Clone(o.Credentials),
		queues:      map[string]*queue{},
		ordinals:    map[string]int{},
		refused:     map[string]int{},
	}
}

// SetCredentials replaces the keys that may sign.
func (s *SQS) SetCredentials(c ...Credential) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.credentials = slices.Clone(c)
}

// CreateQueue makes a queue named name, or "account/name", as the action does but without a request.
// FIFO goes by the suffix. attributes may be nil; they are not checked. An existing queue is replaced.
func (s *SQS) CreateQueue(name string, attributes map[string]string) {
	account, name := split(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues[account+"/"+name] = newQueue(account, name, attributes, s.o.Now())
}

// DeleteQueue takes a queue and all it holds away. It reports whether there was one.
func (s *SQS) DeleteQueue(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.findLocked(name)
	if q != nil {
		delete(s.queues, q.account+"/"+q.name)
	}
	return q != nil
}

// QueueURL is the URL of a queue under a base address such as localcloud.Server's URL.
func QueueURL(base, name string) string {
	account, name := split(name)
	return strings.TrimSuffix(base, "/") + "/" + account + "/" + name
}

// split takes a queue URL, a path, "account/name" or a bare name apart.
func split(name string) (account, queue string) {
	if u, err := url.Parse(name); err == nil && u.Host != "" {
		name = u.Path
	}
	name = strings.Trim(name, "/")
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		return DefaultAccount, name
	}
	account, queue = name[:i], name[i+1:]
	if j := strings.LastIndexByte(account, '/'); j >= 0 {
		account = account[j+1:]
	}
	return account, queue
}

// findLocked looks a queue up; a bare name that the default account has not, in any account.
func (s *SQS) findLocked(name string) *queue {
	account, bare := split(name)
	if q := s.queues[account+"/"+bare]; q != nil || strings.Contains(strings.Trim(name, "/"), "/") {
		return q
	}
	for _, key := range slices.Sorted(maps.Keys(s.queues)) {
		if q := s.queues[key]; q.name == bare {
			return q
		}
	}
	return nil
}

var queueDoesNotExist = fail("QueueDoesNotExist", "The specified queue does not exist.")

// queueLocked is the queue that a request names by its URL, made on the spot where that is wanted.
func (s *SQS) queueLocked(req *request) (*queue, *apiError) {
	if !req.hasQueueURL || req.queueURL == "" {
		return nil, missingParameter("QueueUrl")
	}
	u, err := url.Parse(req.queueURL)
	if err != nil || u.Host == "" || strings.Count(strings.Trim(u.Path, "/"), "/") < 1 {
		return nil, fail("InvalidAddress", "The address %s is not valid for this endpoint.", req.queueURL)
	}
	account, name := split(req.queueURL)
	q := s.queues[account+"/"+name]
	if q == nil && s.o.AutoCreate {
		if err := checkQueueName(name); err != nil {
			return nil, err
		}
		var attributes map[string]string
		if strings.HasSuffix(name, ".fifo") {
			attributes = map[string]string{"FifoQueue": "true"}
		}
		q = newQueue(account, name, attributes, s.o.Now())
		s.queues[account+"/"+name] = q
	}
	if q == nil {
		return nil, queueDoesNotExist
	}
	return q, nil
}

// exchange is one request on its way through.
type exchange struct {
	http    *http.Request
	action  string
	ordinal int
	request *request
	effect  localcloud.Effect
	now     time.Time // the service's, when the request is carried out

	unsigned bool // the signature is refused
	sent     int  // ordinal of this send request to its queue
}

type action func(*SQS, *exchange) (any, *apiError)

// actions are by the name after "AmazonSQS." in X-Amz-Target.
var actions = map[string]action{
	"SendMessage":        (*SQS).sendMessage,
	"SendMessageBatch":   (*SQS).sendMessageBatch,
	"ReceiveMessage":     (*SQS).receiveMessage,
	"DeleteMessage":      (*SQS).deleteMessage,
	"DeleteMessageBatch": (*SQS).deleteMessageBatch,
	"CreateQueue":        (*SQS).createQueue,
	"GetQueueUrl":        (*SQS).getQueueURL,
	"GetQueueAttributes": (*SQS).getQueueAttributes,
	"SetQueueAttributes": (*SQS).setQueueAttributes,
	"ListQueues":         (*SQS).listQueues,
	"PurgeQueue":         (*SQS).purgeQueue,
}

// ServeHTTP answers one request.
func (s *SQS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	buffer := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buffer) // all that is kept of a request has been copied out of it
	body, tooLong, err := read(r, buffer)
	if err != nil {
		panic(http.ErrAbortHandler) // the client went while it was sending
	}
	x := &exchange{http: r}
	name, isSQS := strings.CutPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.")
	run := actions[name]
	if isSQS && run != nil {
		x.action = name
	}
	s.mu.Lock()
	s.ordinals[""]++
	if x.action != "" {
		s.ordinals[x.action]++
	}
	x.ordinal = s.ordinals[x.action]
	s.mu.Unlock()

	var refusal *apiError
	switch {
	case tooLong:
		refusal = fail("RequestEntityTooLargeException", "The request is longer than %d bytes.", maxRequestBytes)
	case r.Method != http.MethodPost, x.action == "", !strings.HasPrefix(r.Header.Get("Content-Type"), contentType):
		refusal = fail("UnknownOperationException", "The action or operation requested is invalid: this is the JSON protocol only.")
	default:
		x.request, refusal = decode(body)
	}

	call := s.call(x)
	if s.o.Observe != nil {
		s.o.Observe(call)
	}
	x.effect = s.Faults.Take(call)
	// The signature is judged on arrival, and before the document: who may not sign learns nothing
	// about it.
	if err := s.verify(x, body); err != nil {
		refusal, x.unsigned = err, true
	}
	leave := s.enter(x)
	defer leave()

	wait := x.effect.Wait
	if s.o.Latency != nil {
		wait += s.o.Latency(call)
	}
	if localcloud.Sleep(r.Context(), wait) != nil {
		panic(http.ErrAbortHandler) // nobody waits for it any more, and nothing is stored
	}

	x.now = s.o.Now()
	var reply *localcloud.Reply
	replaced, carryOut := x.effect.Instead()
	if carryOut {
		reply = s.answer(x, refusal, run)
	}
	if replaced && x.effect.Error != nil {
		s.countRefused(x, spell(x.effect.Error.Code).query)
	}
	x.effect.Send(w, r, s.o.Now(), reply, scripted)
}

func (s *SQS) verify(x *exchange, body []byte) *apiError {
	if s.o.AnySigner {
		return nil
	}
	s.mu.Lock()
	credentials := s.credentials // replaced as a whole, never changed
	s.mu.Unlock()
	return verify(x.http, body, s.o.Region, credentials, s.o.Now().Add(x.effect.Skew))
}

// answer runs the action, unless the request is refused already.
func (s *SQS) answer(x *exchange, refusal *apiError, run action) *localcloud.Reply {
	var result any
	err := refusal
	if err == nil {
		result, err = run(s, x)
	}
	var reply *localcloud.Reply
	if err != nil {
		s.countRefused(x, err.query())
		reply = err.reply(x.http.Header.Get("X-Amzn-Query-Mode") == "true")
	} else {
		reply = &localcloud.Reply{Header: http.Header{"Content-Type": {contentType}}}
		if result != nil {
			reply.Body = encode(result)
		}
	}
	reply.Header.Set("x-amzn-RequestId", newID())
	return reply
}

// encode writes a result as the service does: <, > and & are not escaped.
func encode(result any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(result); err != nil {
		panic(err) // structs of strings and numbers only
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// read returns the request's body, in b.
func read(r *http.Request, b *bytes.Buffer) (body []byte, tooLong bool, err error) {
	b.Reset()
	if n := r.ContentLength; n > 0 && n <= maxRequestBytes {
		b.Grow(int(n) + bytes.MinRead)
	}
	n, err := b.ReadFrom(io.LimitReader(r.Body, maxRequestBytes+1))
	return b.Bytes(), n > maxRequestBytes, err
}

// sends reports whether the exchange is one that Stats counts.
func (x *exchange) sends() bool { return x.action == "SendMessage" || x.action == "SendMessageBatch" }

// entries are the messages of a request that sends.
func (x *exchange) entries() []entry {
	switch {
	case x.request == nil:
		return nil
	case x.action == "SendMessage":
		return []entry{x.request.single}
	case x.action == "SendMessageBatch":
		return x.request.entries
	}
	return nil
}

// call is what conditions and observers see. The entries are built only if someone may look.
func (s *SQS) call(x *exchange) *localcloud.Call {
	c := &localcloud.Call{Action: x.action, Ordinal: x.ordinal, Header: x.http.Header}
	if x.request == nil {
		return c
	}
	if x.request.hasQueueURL {
		_, c.Resource = split(x.request.queueURL)
	} else {
		c.Resource = x.request.queueName
	}
	if s.o.Observe == nil && s.o.Latency == nil && !s.Faults.Any() {
		return c
	}
	for i, e := range x.entries() {
		c.Entries = append(c.Entries, seen(i, &e))
	}
	return c
}

// seen is e as conditions see it.
func seen(i int, e *entry) localcloud.Entry {
	a := make(map[string]string, len(e.attributes))
	for k := range e.attributes {
		a[e.attributes[k].name] = e.attributes[k].value
	}
	return localcloud.Entry{Index: i, ID: e.id, Body: bodyBytes(e.body), Attributes: a, Group: e.group, DeduplicationID: e.deduplication}
}

// countedLocked is the queue whose Stats count x. A request that may not sign creates none.
func (s *SQS) countedLocked(x *exchange) (*queue, *apiError) {
	if !x.unsigned {
		return s.queueLocked(x.request)
	}
	account, name := split(x.request.queueURL)
	if q := s.queues[account+"/"+name]; q != nil {
		return q, nil
	}
	return nil, queueDoesNotExist
}

// enter counts a send request into its queue's Stats, and as in flight until the returned function
// is called.
func (s *SQS) enter(x *exchange) func() {
	if !x.sends() || x.request == nil {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.countedLocked(x)
	if err != nil {
		return func() {}
	}
	now, entries := s.o.Now(), x.entries()
	q.stats.requests++
	x.sent = q.stats.requests
	q.stats.entries += len(entries)
	q.stats.sizes[len(entries)]++
	q.stats.inFlight.Enter(now)
	groups := map[string]*localcloud.Gauge{}
	for i := range entries {
		group := entries[i].group
		if group == "" || groups[group] != nil {
			continue
		}
		g := q.groups[group]
		if g == nil {
			g = &localcloud.Gauge{}
			q.groups[group] = g
		}
		groups[group] = g
		g.Enter(now)
		if g.Max() > q.stats.maxPerGroup {
			q.stats.maxPerGroup, q.stats.busiest = g.Max(), group
		}
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		now := s.o.Now()
		q.stats.inFlight.Leave(now)
		for group, g := range groups {
			g.Leave(now)
			if g.Now() == 0 {
				delete(q.groups, group) // as many groups as there are customers: keep only the busy ones
			}
		}
	}
}

// countRefused counts a refused request, for its queue if it names one that exists and sends.
func (s *SQS) countRefused(x *exchange, code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.sends() && x.request != nil {
		if q, err := s.countedLocked(x); err == nil {
			q.stats.refused[code]++
			return
		}
	}
	s.refused[code]++
}

// newID is a random UUID from the fast generator: ids have to be distinct, not secret.
func newID() string {
	var id uuid.UUID
	for i := range id {
		id[i] = byte(rand.Uint32())
	}
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id.String()
}
