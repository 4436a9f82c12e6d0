package pubsub

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

const userAgent = "ankusa-connect"

// publication is one call of Publish.
type publication struct {
	client *Client
	url    string
	// stop is set when nothing more can be sent, whatever the key: there is no token, or the service
	// named the time before which it wants to hear nothing. What is left fails like what met it.
	stop *classify.Error
	// held is set when an earlier message of the current ordering key has failed otherwise than
	// permanently; sending a later one would overtake it.
	held *classify.Error
}

// send publishes msgs, which fit into one request, and sets their results. A request that is refused
// for what may be one message's fault is cut in two, again and again: first left, then right, which
// keeps the order of a key and keeps one Publish from using more than one request at a time.
func (p *publication) send(ctx context.Context, msgs []Message, errs []error) {
	switch {
	case p.held != nil:
		fill(errs, p.held)
		return
	case p.stop != nil:
		fill(errs, p.stop)
		return
	case ctx.Err() != nil:
		p.stop = unsent(ctx)
		fill(errs, p.stop)
		return
	}
	err := p.request(ctx, msgs)
	if err == nil {
		return
	}
	if len(msgs) > 1 && splits(err) {
		if p.client.opts.Bisected != nil {
			p.client.opts.Bisected()
		}
		half := len(msgs) / 2
		p.send(ctx, msgs[:half], errs[:half])
		p.send(ctx, msgs[half:], errs[half:])
		return
	}
	fill(errs, err)
	if err.Class == classify.Permanent {
		return
	}
	if err.RetryAfter > 0 {
		p.stop = err
	}
	if msgs[0].OrderingKey != "" {
		p.held = &classify.Error{
			Class: classify.Transient, Service: service, Code: "held",
			Message:    "held behind an earlier message of its ordering key, which failed",
			RetryAfter: err.RetryAfter, Err: err,
		}
	}
}

// request sends msgs as one request and judges the reply. A 401 is met with a new token, once.
func (p *publication) request(ctx context.Context, msgs []Message) *classify.Error {
	c := p.client
	buf := takeBuffer(bodySize(msgs))
	defer giveBuffer(buf)
	body := appendRequest((*buf)[:0], msgs)
	*buf = body

	for first := true; ; first = false {
		header := http.Header{"Content-Type": {"application/json"}, "User-Agent": {userAgent}}
		token := ""
		if c.opts.Tokens != nil {
			var err error
			if token, err = c.opts.Tokens.Token(ctx); err != nil {
				p.stop = classify.Of(err)
				return p.stop
			}
			header.Set("Authorization", "Bearer "+token)
		}
		start := time.Now()
		reply, err := c.post(ctx, &wire.Request{Method: http.MethodPost, URL: p.url, Header: header, Body: body})
		took := time.Since(start)
		var failure *classify.Error
		if err != nil {
			failure = classify.Of(err)
		} else {
			failure = judge(reply, len(msgs), time.Now())
		}
		refused := err == nil && reply.Status == http.StatusUnauthorized && token != ""
		if refused {
			c.opts.Tokens.Invalidate(token)
		}
		again := refused && first
		if c.opts.Observe != nil {
			c.opts.Observe(Observation{Entries: len(msgs), Bytes: len(body), Latency: took, Err: failure, Resent: again})
		}
		if again {
			continue
		}
		if failure != nil && failure.Class == classify.Config && c.opts.Tokens == nil && failure.Code == "UNAUTHENTICATED" {
			failure.Message = "no token is sent to an emulator or over plain http: " + failure.Message
		}
		return failure
	}
}

// maxPooledBytes is the largest buffer that is kept. No request is larger.
const maxPooledBytes = MaxBodyBytes

// buffers holds *[]byte. A request of 1,000 messages is over a megabyte, and making and clearing that
// anew each time costs as much as filling it.
var buffers sync.Pool

func takeBuffer(size int) *[]byte {
	if b, _ := buffers.Get().(*[]byte); b != nil && cap(*b) >= size {
		return b
	}
	b := make([]byte, 0, size)
	return &b
}

func giveBuffer(b *[]byte) {
	if cap(*b) <= maxPooledBytes {
		buffers.Put(b)
	}
}
