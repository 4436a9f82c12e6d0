package classify

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Error is a failure and what it means for the one who sent. Its text is a documented promise, see
// the package comment; callers in Go act on Class and Code, never on text.
type Error struct {
	Class   Class
	Service string // who says so: "sqs", "pubsub", "s3", "message", …
	Status  int    // HTTP status; 0 when there was no HTTP answer
	Code    string // the service's own code, verbatim, or one of ours (message_too_large, md5_mismatch, …)
	Message string // what an operator needs: field or limit, size, remedy. Never a body or a secret

	// RetryAfter is the least time to wait before the next try, as the service asked. Zero is none.
	RetryAfter time.Duration

	Err error // the cause, for Unwrap; its text is not printed when Message is set
}

// Error returns "class: service status code: message", leaving out what is empty.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Class.String())
	sep := ": "
	for _, part := range [...]string{e.Service, statusText(e.Status), e.Code} {
		if part != "" {
			b.WriteString(sep)
			b.WriteString(part)
			sep = " "
		}
	}
	switch {
	case e.Message != "":
		b.WriteString(": ")
		b.WriteString(e.Message)
	case e.Err != nil:
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

func statusText(status int) string {
	if status == 0 {
		return ""
	}
	return strconv.Itoa(status)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Of returns err as an [*Error]: the one that it wraps or, for an error that nobody classified, a
// transient one around it. It returns nil for nil.
func Of(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Class: Transient, Err: err}
}

// Permanentf makes a permanent error of our own finding; code is a stable word such as invalid_field.
// A %w in format sets Err.
func Permanentf(service, code, format string, args ...any) *Error {
	return newf(Permanent, service, code, format, args)
}

// Configf makes a config error of our own finding.
func Configf(service, code, format string, args ...any) *Error {
	return newf(Config, service, code, format, args)
}

// Throttledf makes a throttled error of our own finding.
func Throttledf(service, code, format string, args ...any) *Error {
	return newf(Throttled, service, code, format, args)
}

// Transientf makes a transient error of our own finding.
func Transientf(service, code, format string, args ...any) *Error {
	return newf(Transient, service, code, format, args)
}

func newf(class Class, service, code, format string, args []any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Class: class, Service: service, Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
}
