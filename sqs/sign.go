package sqs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

const contentType = "application/x-amz-json-1.0"

// signedHeader returns the header of one try of a request: what the protocol wants, signed by SigV4 for
// the given moment. The body's hash is computed once for all tries.
func signedHeader(ctx context.Context, signer *v4.Signer, creds aws.Credentials, t *target, action string, bodyBytes int, hash string, at time.Time) (http.Header, error) {
	u, err := url.Parse(t.url)
	if err != nil {
		return nil, err
	}
	r := &http.Request{
		Method: http.MethodPost, URL: u, Host: u.Host, ContentLength: int64(bodyBytes),
		Header: http.Header{
			"Content-Type":      {contentType},
			"X-Amz-Target":      {"AmazonSQS." + action},
			"X-Amzn-Query-Mode": {"true"},
		},
	}
	// The signer sets and signs X-Amz-Date and X-Amz-Security-Token, and signs the host and length that
	// net/http will send.
	if err := signer.SignHTTP(ctx, creds, r, hash, service, t.region, at); err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", "ankusa-connect") // not signed: proxies add to it
	return r.Header, nil
}

func payloadHash(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// minSkew is how far a reply's Date must be from the moment of signing before a refused signature is put
// down to the clock. SigV4 tolerates five minutes; a small value does no harm, since a clock corrected in
// vain shows no skew on the next try.
const minSkew = time.Minute

// clock is the local one with the service's correction. A wrong clock is not mended from here, so the
// offset is kept.
type clock struct {
	now    func() time.Time
	offset atomic.Int64 // nanoseconds to add to now
}

func (c *clock) at() time.Time { return c.now().Add(time.Duration(c.offset.Load())) }

// learn takes the service's time from a reply to a request that was signed at signedAt. It reports
// whether that request's signature was made for a time that the service can't accept, and by how much.
// Requests signed before somebody else learnt the offset get the same answer.
func (c *clock) learn(h http.Header, signedAt time.Time) (time.Duration, bool) {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0, false
	}
	skew := date.Sub(signedAt)
	if skew.Abs() < minSkew {
		return 0, false
	}
	c.offset.Store(int64(date.Sub(c.now())))
	return skew, true
}
