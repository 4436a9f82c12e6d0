package wire

import (
	"context"
	"errors"
	"fmt"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

// Codes of the errors of this package.
const (
	// CodeNotSent says that the request never left in full, so the service can't have acted on it.
	CodeNotSent = "not_sent"
	// CodeNoReply says that the request left and its outcome was never learned.
	CodeNoReply = "no_reply"
)

// Error is why a request has no reply.
type Error struct {
	// Sent reports whether the whole request had been written at least once. Then the service may
	// have acted on it, and sending it again may do so twice.
	Sent bool
	Err  error // the cause
}

func (e *Error) Error() string {
	if e.Sent {
		return e.Err.Error() + " (the request had been sent: what became of it is not known)"
	}
	return e.Err.Error() + " (the request was not sent)"
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Unknown reports whether err leaves it open if the service acted on the request.
func Unknown(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Sent
}

// fail wraps err for the caller of Do.
func (c *Client) fail(err error, sent bool) error {
	code := CodeNotSent
	if sent {
		code = CodeNoReply
	}
	if errors.Is(err, context.Canceled) {
		err = fmt.Errorf("given up by the sender: %w", err)
	}
	// net/http quotes what is no HTTP, as much of it as there is.
	if text := err.Error(); len(text) > maxCauseBytes {
		err = &shortened{text: Excerpt([]byte(text)), err: err}
	}
	return &classify.Error{Class: classify.Transient, Service: c.service, Code: code, Err: &Error{Sent: sent, Err: err}}
}

// maxCauseBytes is the longest text of a cause that is passed on whole.
const maxCauseBytes = 300

// shortened is an error whose text was too long.
type shortened struct {
	text string
	err  error
}

func (s *shortened) Error() string { return s.text }
func (s *shortened) Unwrap() error { return s.err }
