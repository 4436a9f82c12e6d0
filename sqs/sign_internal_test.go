package sqs

import (
	"net/http"
	"testing"
	"time"
)

func TestClockLearnsFromDate(t *testing.T) {
	local := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	header := func(at time.Time) http.Header { return http.Header{"Date": {at.Format(http.TimeFormat)}} }
	c := &clock{now: func() time.Time { return local }}
	for _, h := range []http.Header{{}, {"Date": {"yesterday"}}, header(local.Add(59 * time.Second)), header(local.Add(-59 * time.Second))} {
		if skew, wrong := c.learn(h, local); wrong || !c.at().Equal(local) {
			t.Fatalf("learn(%v) = %v, %v; a clock that is right was changed", h, skew, wrong)
		}
	}
	if skew, wrong := c.learn(header(local.Add(20*time.Minute)), local); !wrong || skew != 20*time.Minute {
		t.Errorf("learn = %v, %v; want 20m, true", skew, wrong)
	}
	if got := c.at().Sub(local); got != 20*time.Minute {
		t.Fatalf("offset = %v, want 20m", got)
	}
	// A request signed before the offset was learnt was refused for the same reason.
	if _, wrong := c.learn(header(local.Add(20*time.Minute)), local); !wrong {
		t.Error("the second of two requests signed with the wrong clock is taken for bad credentials")
	}
	// One signed afterwards was not.
	if _, wrong := c.learn(header(local.Add(20*time.Minute)), c.at()); wrong {
		t.Error("a refusal without skew is put down to the clock")
	}
	// Signed long ago on a clock that is right: a slow upload. The offset stays.
	if _, wrong := c.learn(header(local.Add(20*time.Minute)), c.at().Add(-10*time.Minute)); !wrong || c.at().Sub(local) != 20*time.Minute {
		t.Errorf("a late request: wrong = %v, offset %v", wrong, c.at().Sub(local))
	}
}
