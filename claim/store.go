package claim

import (
	"context"
	"fmt"
)

// Store keeps packs. Its methods may be called from any goroutine, several at once, for the same
// key too.
type Store interface {
	// Put writes the object and returns nil only once the store has confirmed that it holds
	// exactly these bytes: the message that names them is sent right after. An object of the same
	// key is replaced, and no reader ever sees a part of one.
	//
	// Put tries once; retrying is the caller's, who knows how long the hook may wait. (One thing
	// alone is tried again at once, on a fresh connection: a request that died on a kept-alive
	// connection which the server had closed.) An error is a *classify.Error. Transient and
	// throttled ones concern this object alone; config means a bucket that is missing or refused,
	// or credentials that are; permanent means that this object can never be stored. When ctx ends,
	// Put gives up with an error that wraps ctx's; the object may exist or not.
	//
	// Put keeps nothing of o after it returns.
	Put(ctx context.Context, o *Object) error

	// Check finds out whether Put would work, for `doctor`: it writes a small object at ProbeKey
	// and removes it again. Errors are Put's, or a *LeftoverError when only the removal failed.
	Check(ctx context.Context) error

	// Close gives back what the store holds. Calling it twice is fine. No Put may run or follow.
	Close(ctx context.Context) error
}

// ProbeKey is where Check writes. It lies under claims/, because rights are often granted for that
// prefix alone, and its last part begins with an underscore, which table engines take for hidden.
// It is always the same, so that a store which forbids removal gathers no more than one.
const ProbeKey = "claims/_ankusa_connect_probe"

// Probe returns the object that Check writes: a few bytes of text that say what they are.
func Probe() *Object {
	return newObject(ProbeKey, [][]byte{[]byte("ankusa-connect doctor was here to see whether claims can be stored. This object may be removed.\n")})
}

// LeftoverError says that Check could write but not remove its probe. The store works: sending
// claims needs the right to write only.
type LeftoverError struct {
	Key string
	Err error // why it could not be removed
}

// Error names the object that was left.
func (e *LeftoverError) Error() string {
	return fmt.Sprintf("claims can be stored, but the probe %s could not be removed: %v", e.Key, e.Err)
}

// Unwrap returns why the removal failed.
func (e *LeftoverError) Unwrap() error { return e.Err }
