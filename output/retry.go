package output

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/config"
)

// retrier repeats an upload by the same rules as the scheduler repeats a send.
type retrier struct {
	config.Retry
	draw func(n time.Duration) time.Duration // full jitter: from 0 to n
}

func newRetrier(c config.Retry) retrier {
	return retrier{Retry: c, draw: func(n time.Duration) time.Duration { return rand.N(n + 1) }}
}

// do calls try until it succeeds, fails for good, or a limit is reached; then it returns the last
// error. It gives up when ctx ends.
func (r retrier) do(ctx context.Context, try func() error) error {
	start := time.Now()
	ceiling := r.InitialInterval
	for n := 0; ; n++ {
		err := try()
		if err == nil {
			return nil
		}
		e := classify.Of(err)
		if !e.Class.Retryable() || ctx.Err() != nil || (r.MaxRetries > 0 && n >= r.MaxRetries) {
			return err
		}
		pause := max(r.draw(min(ceiling, r.MaxInterval)), e.RetryAfter)
		if r.MaxElapsedTime > 0 && time.Since(start)+pause > r.MaxElapsedTime {
			return err
		}
		ceiling = min(2*ceiling, r.MaxInterval)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}
