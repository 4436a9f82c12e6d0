package batcher

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

// ErrClosed is what entries fail with that had not left when Close was called, and all entries
// after it.
var ErrClosed = errors.New("batcher: closed")

// CodeHeld is the code of an entry that was not sent because an earlier one of its group failed.
// From a SendFunc it means the same, and costs the entry no retry.
const CodeHeld = "held"

const service = "batcher"

// heldBehind is the result of entries that wait behind cause's entry, which has been given up. It
// is transient whatever cause is: they were never refused.
func heldBehind(cause *classify.Error) *classify.Error {
	return &classify.Error{
		Class: classify.Transient, Service: service, Code: CodeHeld,
		Message: "held behind an earlier entry of its group that failed", Err: cause,
	}
}

// paused is the result of entries that are not sent because the service, in its answer why, has
// asked to wait longer than their retries may take, and as many Submits as may wait for such things
// do so already.
func paused(wait, limit time.Duration, why *classify.Error) *classify.Error {
	return &classify.Error{
		Class: classify.Throttled, Service: service, Code: "paused", RetryAfter: wait, Err: why,
		Message: fmt.Sprintf("not sent: the service asks to wait for another %v, longer than max_elapsed_time (%v), and as many writes as may (half of max_in_flight) wait for such queues already; "+
			"give the queue an output of its own; the service said %q", wait.Round(time.Millisecond), limit, why.Error()),
	}
}

// withdrawn is the result of an entry that leaves unsent, because the batcher was closed or its
// caller's ctx ended. It wraps why, and the entry's last failure when it had one.
func withdrawn(why error, last *classify.Error) *classify.Error {
	code, message := "cancelled", "taken back before it was sent"
	if errors.Is(why, ErrClosed) {
		code, message = "closed", "not sent, because the output closes"
	}
	if last != nil {
		message = "not sent again"
		why = fmt.Errorf("%w (its last failure: %w)", why, last)
	}
	return &classify.Error{Class: classify.Transient, Service: service, Code: code, Message: message, Err: why}
}

// unknown is the result of an entry whose request has left and is not back when its caller's time
// is up.
func unknown(why error) *classify.Error {
	return &classify.Error{
		Class: classify.Transient, Service: service, Code: "outcome_unknown",
		Message: "sent, but not answered in the time left; it may have been accepted", Err: why,
	}
}

var errMissing = &classify.Error{
	Class: classify.Transient, Service: service, Code: "missing_result",
	Message: "the client returned no result for this entry",
}

// panicked names where a SendFunc panicked. The panic's value may quote a hook's body, so only a
// runtime error, which can't, is put into words.
func panicked(value any) *classify.Error {
	message := fmt.Sprintf("the client panicked with a %T", value)
	if e, ok := value.(runtime.Error); ok {
		message = "the client panicked: " + e.Error()
	}
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs[:])])
	for thrown := false; ; {
		frame, more := frames.Next()
		if thrown && frame.Function != "" && !isRuntime(frame.Function) {
			message += fmt.Sprintf(" at %s, line %d", frame.Function, frame.Line)
			break
		}
		thrown = thrown || frame.Function == "runtime.gopanic"
		if !more {
			break
		}
	}
	return &classify.Error{Class: classify.Transient, Service: service, Code: "panic", Message: message}
}

func isRuntime(function string) bool {
	return len(function) > 8 && function[:8] == "runtime."
}
