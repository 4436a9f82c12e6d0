package classify

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

// Retryable reports whether sending the same message again can succeed without anybody's help.
func (c Class) Retryable() bool { return c == Transient || c == Throttled }
