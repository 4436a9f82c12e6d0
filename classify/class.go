package classify

import "net/http"

// Class is what the sender of a failed message should do next.
type Class uint8

const (
	// Transient failures are retried: the same message may well succeed later. It is the zero value,
	// so a failure that nobody explained never sets a good message aside.
	Transient Class = iota
	// Throttled failures are retried too, but the whole queue slows down first.
	Throttled
	// Config failures come from configuration, rights or credentials. No message caused them, retrying
	// does not help, and an operator has to act.
	Config
	// Permanent failures come from the message itself: it will never be accepted as it is.
	Permanent
)

// Classes lists every class, for those who prepare one counter for each.
var Classes = [...]Class{Transient, Throttled, Config, Permanent}

// String returns the word that an [Error]'s text begins with.
func (c Class) String() string {
	switch c {
	case Permanent:
		return "permanent"
	case Config:
		return "config"
	case Throttled:
		return "throttled"
	default:
		return "transient"
	}
}

// OfStatus returns the class of an answer that has nothing but its HTTP status, or whose code nobody
// knows: 429 and 503 are a plea to slow down whoever sends them, a proxy included, and mean throttled.
// No other status decides anything, which makes it transient.
func OfStatus(status int) Class {
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		return Throttled
	}
	return Transient
}

// Retryable reports whether sending the same message again can succeed without anybody's help.
func (c Class) Retryable() bool { return c == Transient || c == Throttled }
