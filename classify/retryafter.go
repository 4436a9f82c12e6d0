package classify

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxRetryAfter bounds what ParseRetryAfter believes: a longer wish would look like a hang.
const MaxRetryAfter = time.Hour

// ParseRetryAfter reads a Retry-After header, in seconds or as an HTTP date counted from now (RFC
// 9110, section 10.2.3). It returns 0 when the header is absent, past or nonsense, and at most
// [MaxRetryAfter].
func ParseRetryAfter(h http.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0
	}
	var d time.Duration
	if n, err := strconv.ParseInt(v, 10, 64); err == nil {
		if n >= int64(MaxRetryAfter/time.Second) {
			return MaxRetryAfter
		}
		d = time.Duration(n) * time.Second
	} else if at, err := http.ParseTime(v); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), MaxRetryAfter)
}
