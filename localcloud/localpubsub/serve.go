package localpubsub

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

// The actions, as google.pubsub.v1 names its methods. Faults and Requests go by them.
const (
	ActionPublish                = "Publish"
	ActionCreateTopic            = "CreateTopic"
	ActionGetTopic               = "GetTopic"
	ActionDeleteTopic            = "DeleteTopic"
	ActionListTopics             = "ListTopics"
	ActionListTopicSubscriptions = "ListTopicSubscriptions"
	ActionCreateSubscription     = "CreateSubscription"
	ActionGetSubscription        = "GetSubscription"
	ActionDeleteSubscription     = "DeleteSubscription"
	ActionListSubscriptions      = "ListSubscriptions"
	ActionPull                   = "Pull"
	ActionAcknowledge            = "Acknowledge"
	ActionModifyAckDeadline      = "ModifyAckDeadline"
	ActionTestIamPermissions     = "TestIamPermissions"
)

// request is one HTTP request on its way through.
type request struct {
	action string
	name   name // of the topic or subscription; without id for a list
	body   []byte
	effect localcloud.Effect
	call   *localcloud.Call

	// Publish only:
	topic    *topic // where it counts; nil when there is no such topic
	messages []*StoredMessage
	keys     []string // the ordering keys among messages, each once
	entry    Request
}

// actions carry a request out. Next to an error the reply means nothing; without either the client
// has gone.
var actions = map[string]func(*PubSub, context.Context, *request) (*localcloud.Reply, *apiError){
	ActionPublish:                (*PubSub).publish,
	ActionCreateTopic:            (*PubSub).createTopic,
	ActionGetTopic:               (*PubSub).getTopic,
	ActionDeleteTopic:            (*PubSub).deleteTopic,
	ActionListTopics:             (*PubSub).listTopics,
	ActionListTopicSubscriptions: (*PubSub).listTopicSubscriptions,
	ActionCreateSubscription:     (*PubSub).createSubscription,
	ActionGetSubscription:        (*PubSub).getSubscription,
	ActionDeleteSubscription:     (*PubSub).deleteSubscription,
	ActionListSubscriptions:      (*PubSub).listSubscriptions,
	ActionPull:                   (*PubSub).pull,
	ActionAcknowledge:            (*PubSub).acknowledge,
	ActionModifyAckDeadline:      (*PubSub).modifyAckDeadline,
	ActionTestIamPermissions:     (*PubSub).testIamPermissions,
}

// route reads action and name from a request line. Segments are unescaped one by one, so an escaped
// slash stays part of its segment.
func route(method, escapedPath string) (string, name) {
	raw := strings.Split(strings.TrimPrefix(escapedPath, "/"), "/")
	seg := make([]string, len(raw))
	for i, s := range raw {
		var err error
		if seg[i], err = url.PathUnescape(s); err != nil {
			return "", name{}
		}
	}
	if len(seg) < 4 || seg[0] != "v1" || seg[1] != "projects" {
		return "", name{}
	}
	n := name{project: seg[2], kind: seg[3]}
	if n.kind != kindTopic && n.kind != kindSubscription {
		return "", name{}
	}
	if len(seg) == 4 {
		return map[string]string{"GET topics": ActionListTopics, "GET subscriptions": ActionListSubscriptions}[method+" "+n.kind], n
	}
	n.id = seg[4]
	verb := ""
	switch {
	case len(seg) == 6 && seg[5] == kindSubscription:
		verb = "/subscriptions"
	case len(seg) > 5:
		return "", name{}
	case method == http.MethodPost:
		// Ids have no colon.
		i := strings.LastIndexByte(n.id, ':')
		if i < 0 {
			return "", name{}
		}
		n.id, verb = n.id[:i], n.id[i:]
	}
	return map[string]string{
		"PUT topics":                           ActionCreateTopic,
		"GET topics":                           ActionGetTopic,
		"DELETE topics":                        ActionDeleteTopic,
		"GET topics/subscriptions":             ActionListTopicSubscriptions,
		"POST topics:publish":                  ActionPublish,
		"POST topics:testIamPermissions":       ActionTestIamPermissions,
		"PUT subscriptions":                    ActionCreateSubscription,
		"GET subscriptions":                    ActionGetSubscription,
		"DELETE subscriptions":                 ActionDeleteSubscription,
		"POST subscriptions:pull":              ActionPull,
		"POST subscriptions:acknowledge":       ActionAcknowledge,
		"POST subscriptions:modifyAckDeadline": ActionModifyAckDeadline,
	}[method+" "+n.kind+verb], n
}

// ServeHTTP answers one request.
func (p *PubSub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req := &request{}
	req.action, req.name = route(r.Method, r.URL.EscapedPath())
	if req.action == "" {
		// Google's front end answers an unknown path with a page, not with a document.
		(&localcloud.Effect{}).Send(w, r, p.o.Now(), localcloud.HTML(http.StatusNotFound), writeError)
		return
	}
	p.arrive(req)
	leave := sync.OnceFunc(func() { p.leave(req) })
	defer leave()

	buf := bodies.Get().(*[]byte)
	defer func() { bodies.Put(buf) }()
	limit := MaxBodyBytes
	if req.action == ActionAcknowledge || req.action == ActionModifyAckDeadline {
		limit = MaxAckBodyBytes
	}
	var err error
	*buf, err = readBody((*buf)[:0], r, limit)
	req.body = *buf
	if err != nil && !errors.Is(err, errTooLarge) {
		panic(http.ErrAbortHandler) // the client went while it was sending
	}
	refusal := p.ready(req, r)
	if err != nil {
		refusal = invalid("Request payload size exceeds the limit: %d bytes.", limit)
	}

	wait := req.effect.Wait
	if p.o.Latency != nil {
		wait += p.o.Latency(req.call)
	}
	if localcloud.Sleep(r.Context(), wait) != nil {
		panic(http.ErrAbortHandler)
	}

	replaced, carryOut := req.effect.Instead()
	var reply *localcloud.Reply
	if carryOut {
		if refusal == nil {
			reply, refusal = actions[req.action](p, r.Context(), req)
		}
		if refusal != nil {
			reply = refusal.document(0)
		}
	}
	if r.Context().Err() != nil && reply == nil && !replaced {
		panic(http.ErrAbortHandler) // a pull whose client went
	}
	p.outcome(req, refusal, replaced)
	// Before the reply: once the client has it, its next request must not find this one in flight.
	leave()
	req.effect.Send(w, r, p.o.Now(), reply, writeError)
}

// arrive enters req into its topic's gauge.
func (p *PubSub) arrive(req *request) {
	if req.action != ActionPublish {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.o.Now()
	req.topic = p.publishTopicLocked(req.name)
	req.entry.Arrived = now
	if req.topic != nil {
		req.topic.stats.requests++
		req.topic.stats.inFlight.Enter(now)
		req.entry.Ordinal = req.topic.stats.requests
	}
}

// ready gives req its ordinal, decodes what it publishes, and asks the script. What it returns is
// why the request can't be carried out.
func (p *PubSub) ready(req *request, r *http.Request) *apiError {
	var refusal *apiError
	if req.action == ActionPublish {
		req.entry.BodyBytes = max(len(req.body), int(r.ContentLength))
		if len(req.body) <= MaxBodyBytes {
			req.messages, refusal = decodePublish(req.body)
		}
		for _, m := range req.messages {
			if m.OrderingKey != "" && !slices.Contains(req.keys, m.OrderingKey) {
				req.keys = append(req.keys, m.OrderingKey)
			}
		}
		if len(req.keys) > 0 {
			req.entry.OrderingKey = req.keys[0]
		}
	}
	p.mu.Lock()
	p.ordinals[""]++
	p.ordinals[req.action]++
	req.call = &localcloud.Call{Action: req.action, Ordinal: p.ordinals[req.action], Resource: req.name.id, Header: r.Header}
	if !p.authorisedLocked(r) {
		refusal = refuse("UNAUTHENTICATED", "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project.")
	}
	if req.topic != nil {
		req.entry.Entries = len(req.messages)
		req.topic.stats.decoded(&req.entry, req.keys)
	}
	p.mu.Unlock()

	if p.Faults.Any() || p.o.Latency != nil || p.o.Observe != nil {
		for _, m := range req.messages {
			req.call.Entries = append(req.call.Entries, localcloud.Entry{Index: m.Index, Body: m.Data, Attributes: m.Attributes, Group: m.OrderingKey})
		}
	}
	if p.o.Observe != nil {
		p.o.Observe(req.call)
	}
	req.effect = p.Faults.Take(req.call)
	return refusal
}

func (p *PubSub) authorisedLocked(r *http.Request) bool {
	if len(p.tokens) == 0 {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") && slices.Contains(p.tokens, strings.TrimSpace(token))
}

// outcome counts what became of req.
func (p *PubSub) outcome(req *request, refusal *apiError, replaced bool) {
	code := ""
	switch {
	case req.effect.Error != nil:
		code = req.effect.Error.Code
	case replaced:
		req.entry.Replaced = true
	case refusal != nil:
		code = refusal.status
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	req.entry.Code = code
	switch {
	case req.topic != nil:
		if code != "" {
			req.topic.stats.refused[code]++
		}
	case code != "":
		p.refused[code]++
	}
}

// leave takes req out of its topic's gauge and writes the log.
func (p *PubSub) leave(req *request) {
	if req.topic == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	req.topic.stats.inFlight.Leave(p.o.Now())
	req.topic.stats.leaveKeys(req.keys)
	if !p.o.DiscardData {
		req.topic.log = append(req.topic.log, req.entry)
	}
}

// bodies holds buffers for request bodies. Nothing that is stored refers to them.
var bodies = sync.Pool{New: func() any { return new([]byte) }}

var errTooLarge = errors.New("request body over the limit")

// readBody reads r's body into buf. Beyond limit it goes on reading for a while without keeping
// anything: a client whose sending is cut short would see a reset instead of the refusal.
func readBody(buf []byte, r *http.Request, limit int) ([]byte, error) {
	if n := r.ContentLength; n > 0 {
		buf = slices.Grow(buf, int(min(n, int64(limit)))+1)
	}
	for {
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, 4096)
		}
		n, err := r.Body.Read(buf[len(buf):min(cap(buf), limit+1)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > limit:
			_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, int64(8*limit)))
			return buf, errTooLarge
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return buf, err
		}
	}
}
