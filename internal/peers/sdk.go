package peers

import (
	"bytes"
	"io"
	"net/http"
	"testing"
)

// SDKClient is the HTTP client to give to an AWS SDK client, with connections of its own that are
// closed when the test ends.
//
// The SDK closes a request's body once it has the reply's header. A quick reply finds net/http not
// done with the body, which takes the closing for a failed write and drops the connection under the
// reply: then the SDK fails, or asks again, for what the server has done already, and a
// ReceiveMessage hides its messages. This client reads the body before it sends.
func SDKClient(t testing.TB) *http.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: bodyFirst{transport}}
}

type bodyFirst struct{ next http.RoundTripper }

func (b bodyFirst) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		return b.next.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		return nil, err
	}
	clone := r.Clone(r.Context())
	clone.Body = io.NopCloser(bytes.NewReader(body))
	return b.next.RoundTrip(clone)
}
