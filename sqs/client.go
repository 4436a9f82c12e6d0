package sqs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/wire"
	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Credentials provides what requests are signed with. It is called for each request, so it caches.
type Credentials interface {
	// Retrieve returns the current credentials. When ctx ends, only this caller's wait ends. The error
	// is a [*classify.Error].
	Retrieve(ctx context.Context) (aws.Credentials, error)
	// Invalidate says that the service refused c. The next Retrieve looks them up again, unless other
	// credentials have taken their place already.
	Invalidate(c aws.Credentials)
}

// Observation is one request and its outcome, for metrics.
type Observation struct {
	Queue   string        // the queue's URL
	Entries int           // messages in the request
	Latency time.Duration // from signing to the end of the reply
	// Class and OK say how the request as a whole went. OK is set when it was answered with a reply
	// that says something of its entries, who may have failed all the same.
	OK    bool
	Class classify.Class
	// Split is set when the request is going to be divided.
	Split bool
}

// Outcome returns "ok" or the class's name.
func (o Observation) Outcome() string {
	if o.OK {
		return "ok"
	}
	return o.Class.String()
}

// Options configure a [Client].
type Options struct {
	// Region to sign for. Empty takes it from each queue's URL, then from the environment.
	Region string
	// Endpoint that requests go to, whatever the queue. Empty takes it from the environment, then from
	// each queue's URL.
	Endpoint string
	// DynamicQueues says that queue URLs come from messages, which must not choose their receiver: see
	// [CheckQueueURL].
	DynamicQueues bool
	// Credentials sign the requests. Required.
	Credentials Credentials
	// Wire carries the requests. Required; it stays the caller's to close.
	Wire *wire.Client
	// Single sends each entry by a SendMessage of its own.
	Single bool
	// Now is the local clock; nil means time.Now.
	Now func() time.Time
	// Getenv reads the environment; nil means os.Getenv.
	Getenv func(string) string
	// Observe is told of each request, from the goroutine that called Send. Nil is nobody.
	Observe func(Observation)
	// Logf is told of what makes no sense but fails nothing, and of our own bugs. Nil is nobody.
	Logf func(format string, args ...any)
}

// Client sends messages. Use [New].
type Client struct {
	o           Options
	signer      *v4.Signer
	clock       clock
	lastSuspect atomic.Int64 // when refused credentials were last looked up again, Unix ns
}

// New checks what can be checked without a queue and dials nothing.
func New(o Options) (*Client, error) {
	switch {
	case o.Credentials == nil:
		return nil, errors.New("sqs: Credentials is required")
	case o.Wire == nil:
		return nil, errors.New("sqs: Wire is required")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Observe == nil {
		o.Observe = func(Observation) {}
	}
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
	if o.Region != "" {
		if _, err := ResolveRegion(o.Region, "", o.Getenv); err != nil {
			return nil, err
		}
	}
	e := ConfiguredEndpoint(o.Endpoint, o.Getenv)
	if e.String() != "" {
		if _, err := normalEndpoint(e.Source(), e.String()); err != nil {
			return nil, err
		}
	}
	return &Client{o: o, signer: v4.NewSigner(), clock: clock{now: o.Now}}, nil
}

// target is where a queue's requests go.
type target struct {
	queueURL string
	url      string // with a path, at least a slash
	region   string
	fifo     bool
}

func (c *Client) target(queueURL string) (*target, error) {
	configured := ConfiguredEndpoint(c.o.Endpoint, c.o.Getenv).String()
	if err := CheckQueueURL(queueURL, configured, c.o.DynamicQueues); err != nil {
		return nil, err
	}
	endpoint, err := ResolveEndpoint(c.o.Endpoint, queueURL, c.o.Getenv)
	if err != nil {
		return nil, err
	}
	region, err := ResolveRegion(c.o.Region, queueURL, c.o.Getenv)
	if err != nil {
		return nil, err
	}
	return &target{queueURL: queueURL, url: endpoint + "/", region: region, fifo: IsFIFO(queueURL)}, nil
}

// Send sends 1 to [MaxEntries] entries to a queue and returns one result for each, in their order: nil
// when it is stored, else a [*classify.Error]. The entries have been validated. See the package comment
// for splitting and for order.
//
// When ctx ends, entries that have not left yet fail with its cause and aren't sent; a request that has
// left is given up too, and its outcome is unknown. Who wants it awaited hands over a ctx that outlives
// the wait.
func (c *Client) Send(ctx context.Context, queueURL string, entries []Entry) []error {
	s := sending{Client: c, entries: entries, results: make([]error, len(entries))}
	if len(entries) == 0 {
		return s.results
	}
	var err error
	if s.target, err = c.target(queueURL); err == nil && len(entries) > MaxEntries {
		c.o.Logf("sqs: BUG: Send was given %d entries, the limit is %d", len(entries), MaxEntries)
		err = classify.Transientf(service, "TooManyEntries", "%d entries in one request, the limit is %d: nothing was sent", len(entries), MaxEntries)
	}
	if err != nil {
		for i := range s.results {
			s.results[i] = err
		}
		return s.results
	}
	pick := make([]int, 0, len(entries))
	for i := range entries {
		if s.results[i] = checkFIFO(s.target, &entries[i]); s.results[i] == nil {
			pick = append(pick, i)
		}
	}
	if c.o.Single {
		for i := range pick {
			s.send(ctx, pick[i:i+1])
		}
	} else {
		s.send(ctx, pick)
	}
	return s.results
}

// checkFIFO checks what only the kind of the queue decides.
func checkFIFO(t *target, e *Entry) error {
	switch {
	case !t.fifo:
	case e.GroupID == "":
		return invalid("message_group_id is empty, and the queue is a FIFO queue")
	case e.DeduplicationID == "":
		return invalid("the deduplication id is empty, and the queue is a FIFO queue")
	}
	return nil
}

// sending is one call of Send.
type sending struct {
	*Client
	*target
	entries []Entry
	results []error
	held    []string        // groups that must not go on
	failed  *classify.Error // what ended the sending: no message's fault, so the rest is not tried
}

// send sends the entries that pick names, in one request if the service takes it.
func (s *sending) send(ctx context.Context, pick []int) {
	pick = s.sendable(ctx, pick)
	if len(pick) == 0 {
		return
	}
	split := false
	reply, failure := s.post(ctx, pick, &split)
	switch {
	case split:
		half := (len(pick) + 1) / 2
		s.send(ctx, pick[:half])
		s.send(ctx, pick[half:])
		return
	case failure != nil:
		for _, i := range pick {
			s.results[i] = failure
		}
		if failure.Class != classify.Permanent {
			s.failed = failure
		}
	case s.o.Single:
		s.results[pick[0]] = readSingle(reply, &s.entries[pick[0]])
	default:
		readBatch(reply, s.entries, pick, s.results, s.o.Logf)
	}
	if !s.fifo {
		return
	}
	for _, i := range pick {
		if e := classify.Of(s.results[i]); e != nil && e.Class != classify.Permanent {
			s.held = append(s.held, s.entries[i].GroupID)
		}
	}
}

// sendable gives what must not be sent its result and returns the others.
func (s *sending) sendable(ctx context.Context, pick []int) []int {
	if len(pick) == 0 {
		return nil
	}
	failure := s.failed
	if failure == nil && ctx.Err() != nil {
		cause := context.Cause(ctx)
		failure = &classify.Error{Service: service, Code: wire.CodeNotSent, Message: "given up before it was sent: " + cause.Error(), Err: cause}
	} else if failure != nil {
		unsent := *failure
		unsent.Message = "not sent, because the request before it failed: " + cmp.Or(failure.Message, errorText(failure.Err))
		failure = &unsent
	}
	if failure != nil {
		for _, i := range pick {
			s.results[i] = failure
		}
		return nil
	}
	if len(s.held) == 0 {
		return pick
	}
	free := make([]int, 0, len(pick))
	for _, i := range pick {
		if slices.Contains(s.held, s.entries[i].GroupID) {
			s.results[i] = classify.Transientf(service, CodeHeld, "held behind an earlier message of its group that was not stored")
			continue
		}
		free = append(free, i)
	}
	return free
}

func errorText(err error) string {
	if err == nil {
		return "no reason given"
	}
	return err.Error()
}

// post sends one request, with what healing it allows, and returns its reply or its failure. It sets
// split when the request has to be divided instead.
func (s *sending) post(ctx context.Context, pick []int, split *bool) (*wire.Reply, *classify.Error) {
	buffer := buffers.Get().(*[]byte)
	defer putBuffer(buffer)
	*buffer = slices.Grow(*buffer, sizeHint(s.entries, pick))
	action := "SendMessageBatch"
	if s.o.Single {
		action = "SendMessage"
		*buffer = appendSingle(*buffer, s.queueURL, s.fifo, &s.entries[pick[0]])
	} else {
		*buffer = appendBatch(*buffer, s.queueURL, s.fifo, s.entries, pick)
	}
	hash := payloadHash(*buffer)

	var healed healing
	for {
		creds, err := s.o.Credentials.Retrieve(ctx)
		if err != nil {
			return nil, classify.Of(err)
		}
		start, signedAt := s.o.Now(), s.clock.at()
		header, err := signedHeader(ctx, s.signer, creds, s.target, action, len(*buffer), hash, signedAt)
		if err != nil {
			return nil, classify.Transientf(service, "", "the request can't be signed: %w", err)
		}
		reply, err := s.o.Wire.Do(ctx, &wire.Request{URL: s.url, Header: header, Body: *buffer})
		o := Observation{Queue: s.queueURL, Entries: len(pick), Latency: s.o.Now().Sub(start)}
		if err == nil && reply.Status == 200 {
			o.OK = true
			s.o.Observe(o)
			return reply, nil
		}
		failure := classify.Of(err)
		again := false
		if err == nil {
			reply.Body = redact(reply.Body, creds)
			failure = readError(reply)
			failure.RetryAfter = classify.ParseRetryAfter(reply.Header, s.o.Now())
			again = s.heal(ctx, failure, reply, creds, signedAt, &healed)
		}
		if !again && err == nil {
			*split = classify.SplitSQS(failure.Code) && len(pick) > 1
			s.lastWord(failure, len(pick))
		}
		o.Class, o.Split = failure.Class, *split
		s.o.Observe(o)
		if !again {
			return nil, failure
		}
	}
}

// lastWord adds what a failure needs before it is reported.
func (s *sending) lastWord(failure *classify.Error, n int) {
	switch {
	case n == 1 && classify.IsSQSCode(failure.Code, "BatchRequestTooLong"):
		failure.Class = classify.Permanent
		failure.Message = strings.TrimSpace(failure.Message + " The message alone is too long for the queue: lower max_message_bytes to the queue's MaximumMessageSize, or raise that.")
	case slices.ContainsFunc(ourBugs, func(code string) bool { return classify.IsSQSCode(failure.Code, code) }):
		s.o.Logf("sqs: BUG: a request of %d entries was refused as malformed: %v", n, failure)
	}
}

// ourBugs are codes of requests that we built wrong. The messages in them are innocent.
var ourBugs = []string{
	"TooManyEntriesInBatchRequest", "TooManyEntries", "EmptyBatchRequest", "BatchEntryIdsNotDistinct", "IdsNotDistinct", "InvalidBatchEntryId",
}

// healing remembers what has been tried for one request; each remedy is tried once.
type healing struct{ token, clock bool }

// suspectEvery bounds how often refused credentials are looked up again. A key that is wrong for good
// must not become a look-up at its issuer for each message.
const suspectEvery = 5 * time.Second

// refusedKeys are codes of credentials that are wrong now and may have been replaced at their source.
var refusedKeys = []string{
	"InvalidClientTokenId", "UnrecognizedClient", "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidSignature",
}

// timeCodes are codes of a signature refused because of its time, or possibly so.
var timeCodes = []string{"RequestTimeTooSkewed", "RequestExpired", "SignatureDoesNotMatch", "InvalidSignature"}

// heal does what can make the next try differ from this one, and reports whether it has.
func (s *sending) heal(ctx context.Context, failure *classify.Error, reply *wire.Reply, creds aws.Credentials, signedAt time.Time, done *healing) bool {
	is := func(codes []string) bool {
		return slices.ContainsFunc(codes, func(code string) bool { return classify.IsSQSCode(failure.Code, code) })
	}
	if is(timeCodes) {
		if skew, wrong := s.clock.learn(reply.Header, signedAt); wrong {
			failure.Class = classify.Transient
			failure.Message = fmt.Sprintf("signed for a time %v away from the service's, whose clock is used from now on: set the local clock. %s", skew.Abs().Round(time.Second), failure.Message)
			again := !done.clock
			done.clock = true
			return again
		}
	}
	switch {
	case done.token:
		return false
	case classify.IsSQSCode(failure.Code, "ExpiredToken"):
		done.token = true
		s.o.Credentials.Invalidate(creds)
		return true
	case is(refusedKeys):
		// Whoever sent with the same keys at the same time is refused too, and all of them wait for the one
		// look-up. It is asked for sparingly; whether the source has other keys already is always asked.
		now, last := s.o.Now().UnixNano(), s.lastSuspect.Load()
		if (last == 0 || now-last >= int64(suspectEvery)) && s.lastSuspect.CompareAndSwap(last, now) {
			s.o.Credentials.Invalidate(creds)
		}
		fresh, err := s.o.Credentials.Retrieve(ctx)
		done.token = err == nil && !sameKeys(fresh, creds)
		return done.token
	}
	return false
}
