package doctor

import (
	"context"
	"net/http"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

const (
	// skewWarning is from where on the output corrects its clock, after a request that was refused.
	skewWarning = time.Minute
	// skewFailure is how old a signed request may be for AWS, "in most cases" (IAM User Guide, AWS
	// Signature Version 4 for API requests); Google's token endpoint is as strict with assertions.
	skewFailure = 5 * time.Minute
)

// reach asks the endpoint for its root, without credentials: any answer shows that it is there, and
// what time it is. It comes before the credentials, whose look-up a wrong clock breaks too.
func (c *check) reach(ctx context.Context, endpoint, source string) bool {
	ctx, cancel := c.within(ctx)
	defer cancel()
	before := c.now()
	reply, err := c.wire.Do(ctx, &wire.Request{Method: http.MethodGet, URL: endpoint + "/", Header: http.Header{"User-Agent": {userAgent}}})
	if err != nil {
		c.fail("endpoint", "check the address, the network, name resolution, proxy and TLS", "%s, from %s, can't be reached: %s", endpoint, source, reason(err))
		return false
	}
	c.ok("endpoint", "%s, from %s, answers", endpoint, source)
	c.compareClocks(reply.Header, before, c.now())
	return true
}

const userAgent = "ankusa-connect"

// compareClocks takes the service's time to be that of the middle of the exchange. The header has
// whole seconds.
func (c *check) compareClocks(h http.Header, before, after time.Time) {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		c.skip("clock", "", "the answer has no Date header")
		return
	}
	middle := before.Add(after.Sub(before) / 2)
	skew := middle.Truncate(time.Second).Sub(date)
	where := "ahead of"
	if skew < 0 {
		where = "behind"
	}
	const mend = "set the clock, for example by NTP"
	switch away := skew.Abs().Round(time.Second); {
	case away <= time.Second: // the header's own grain
		c.ok("clock", "agrees with the service's")
	case away < skewWarning:
		c.ok("clock", "%v %s the service's", away, where)
	case away < skewFailure:
		c.clock = -skew
		c.warn("clock", mend, "%v %s the service's: signatures and tokens are still accepted", away, where)
	default:
		c.clock = -skew
		c.fail("clock", mend, "%v %s the service's: signatures and tokens made here are refused", away, where)
	}
}

// serviceTime is the time as the service sees it.
func (c *check) serviceTime() time.Time { return c.now().Add(c.clock) }

// reason is an error's text without its class, which says what a sender should do and not what is
// wrong.
func reason(err error) string {
	e := classify.Of(err)
	switch {
	case e.Message != "" && e.Code != "" && e.Service != "":
		return e.Code + ": " + e.Message
	case e.Message != "":
		return e.Message
	case e.Err != nil:
		return e.Err.Error()
	}
	return e.Error()
}
