package output_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

// Where order matters nothing is ever given up, so nothing is returned that the engine could log. An
// hour without an answer is said once, and so is its end.
func TestLongOutageOfAnOrderedOutputIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipedPipeline(t, newScript(numbered(5)))
		start := time.Now()
		p.sqs.Faults.Add(localcloud.Fault{
			If:     func(*localcloud.Call) bool { return time.Since(start) < time.Hour },
			Effect: localcloud.Effect{Error: &localcloud.ErrorReply{Status: 500, Code: "InternalError"}},
		})
		p.start(p.script, p.sqsYAML("hooks.fifo", "")).wait()
		checkOrder(t, p.sqs.Messages("hooks.fifo"), 5, true)
		if n := strings.Count(p.logs.String(), "Nothing has been delivered for"); n != 1 {
			t.Errorf("said %d times, want once:\n%s", n, p.logs)
		}
		if !strings.Contains(p.logs.String(), "transient: sqs 500 InternalError") {
			t.Errorf("the error is not named:\n%s", p.logs)
		}
	})
}

func TestShortTroubleIsNotSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipedPipeline(t, newScript(numbered(5)))
		start := time.Now()
		p.sqs.Faults.Add(localcloud.Fault{
			If:     func(*localcloud.Call) bool { return time.Since(start) < 15*time.Second },
			Effect: localcloud.Effect{Error: &localcloud.ErrorReply{Status: 500, Code: "InternalError"}},
		})
		p.start(p.script, p.sqsYAML("hooks.fifo", "")).wait()
		if p.logs.String() != "" {
			t.Errorf("the log says\n%s", p.logs)
		}
	})
}
