package s3store

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/ankusa-connect/ankusa-connect/claim/internal/buffer"
	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

// transport lets the SDK send through wire, so that claims have the timeouts, the fresh connection
// after a stale one and the proxies that messages have.
type transport struct {
	wire *wire.Client
}

// Do implements the SDK's HTTPClient.
func (t *transport) Do(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil && r.Body != http.NoBody {
		defer r.Body.Close()
		if r.ContentLength < 0 {
			return nil, errors.New("the length of the request is not known") // ours always is
		}
		b := buffer.Get(r.ContentLength)
		defer buffer.Put(b) // wire doesn't touch it once Do is back
		*b = (*b)[:r.ContentLength]
		if _, err := io.ReadFull(r.Body, *b); err != nil {
			return nil, err
		}
		body = *b
	}
	reply, err := t.wire.Do(r.Context(), &wire.Request{
		Method: r.Method,
		URL:    r.URL.String(),
		Header: r.Header,
		Body:   body,
	})
	if err != nil {
		return nil, err
	}
	if reply.Status >= 300 && !isDocument(reply.Body) {
		// Not S3 talking. The SDK would say "failed to decode" and drop what was said.
		return nil, &classify.Error{
			Class:      classify.OfStatus(reply.Status),
			Service:    Service,
			Status:     reply.Status,
			Code:       "unexpected_reply",
			Message:    fmt.Sprintf("the answer is no S3 error document: %s", wire.Excerpt(reply.Body)),
			RetryAfter: classify.ParseRetryAfter(reply.Header, time.Now()),
		}
	}
	if reply.Truncated {
		return nil, &classify.Error{
			Service: Service,
			Status:  reply.Status,
			Code:    "unexpected_reply",
			Message: fmt.Sprintf("the answer broke off or is too long: %s", wire.Excerpt(reply.Body)),
			Err:     reply.Err,
		}
	}
	return &http.Response{
		Status:        fmt.Sprintf("%d %s", reply.Status, http.StatusText(reply.Status)),
		StatusCode:    reply.Status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        reply.Header,
		Body:          io.NopCloser(bytes.NewReader(reply.Body)),
		ContentLength: int64(len(reply.Body)),
		Request:       r,
	}, nil
}

// isDocument reports whether a body is S3's kind of error: a whole XML document Error with a Code.
func isDocument(body []byte) bool {
	var document struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
	}
	return xml.Unmarshal(body, &document) == nil && document.Code != ""
}
