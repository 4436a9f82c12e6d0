package localcloud

import (
	"testing"
	"time"
)

// 1 for a second, 2 for a second, none for an hour, 1 for two seconds: 5 request-seconds in 4 busy
// seconds. The idle hour must not count.
func TestGaugeAveragesOverBusyTime(t *testing.T) {
	var g Gauge
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	g.Enter(at(0))
	g.Enter(at(1))
	g.Leave(at(2))
	g.Leave(at(2))
	g.Enter(at(3602))
	g.Leave(at(3604))
	if g.Max() != 2 || g.Now() != 0 || g.Average() != 1.25 {
		t.Errorf("max %d, now %d, average %v, want 2, 0, 1.25", g.Max(), g.Now(), g.Average())
	}
	g.Restart()
	if g.Max() != 0 || g.Average() != 0 {
		t.Errorf("after Restart max %d, average %v, want zeros", g.Max(), g.Average())
	}
}
