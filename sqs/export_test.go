package sqs

import (
	"net/http"
	"net/url"
	"testing"
)

// SetProxyForTest has credential look-ups go through a proxy until the test ends.
func SetProxyForTest(t *testing.T, proxy string) {
	u, err := url.Parse(proxy)
	if err != nil {
		t.Fatal(err)
	}
	old := environmentProxy
	environmentProxy = http.ProxyURL(u)
	t.Cleanup(func() { environmentProxy = old })
}
