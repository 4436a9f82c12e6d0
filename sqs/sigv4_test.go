package sqs_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// verifier checks SigV4 signatures on its own: it shares nothing with the signer and reads only what
// arrived. It is pinned to the published test suite below.
type verifier struct {
	id, secret, token, region, service string
}

func mac(key []byte, s string) []byte {
	h := hmac.New(sha256.New, key)
	io.WriteString(h, s)
	return h.Sum(nil)
}

// escapePath escapes a path once more: every service but S3 signs the path that it gets, escaped again.
func escapePath(p string) string {
	var b strings.Builder
	for i := range len(p) {
		switch c := p[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~/", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// sign returns the signature of a request over the given headers.
func (v verifier) sign(r *http.Request, body []byte, date string, signed []string) string {
	var canonical strings.Builder
	path, query, _ := strings.Cut(r.RequestURI, "?")
	fmt.Fprintf(&canonical, "%s\n%s\n%s\n", r.Method, escapePath(path), query)
	for _, name := range signed {
		var value string
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = fmt.Sprint(r.ContentLength)
		default:
			value = strings.Join(r.Header.Values(name), ",")
		}
		fmt.Fprintf(&canonical, "%s:%s\n", name, strings.Join(strings.Fields(value), " "))
	}
	sum := sha256.Sum256(body)
	fmt.Fprintf(&canonical, "\n%s\n%s", strings.Join(signed, ";"), hex.EncodeToString(sum[:]))
	canonicalSum := sha256.Sum256([]byte(canonical.String()))
	scope := date[:8] + "/" + v.region + "/" + v.service + "/aws4_request"
	toSign := "AWS4-HMAC-SHA256\n" + date + "\n" + scope + "\n" + hex.EncodeToString(canonicalSum[:])
	key := []byte("AWS4" + v.secret)
	for part := range strings.SplitSeq(scope, "/") {
		key = mac(key, part)
	}
	return hex.EncodeToString(mac(key, toSign))
}

// verify returns what is wrong with a request that arrived at the time now.
func (v verifier) verify(r *http.Request, body []byte, now time.Time) error {
	rest, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=")
	if !ok {
		return fmt.Errorf("authorization = %q", r.Header.Get("Authorization"))
	}
	parts := strings.Split(rest, ", ")
	if len(parts) != 3 {
		return fmt.Errorf("authorization has %d parts", len(parts))
	}
	date := r.Header.Get("X-Amz-Date")
	at, err := time.Parse("20060102T150405Z", date)
	if err != nil {
		return err
	}
	if at.Sub(now).Abs() > 5*time.Minute {
		return fmt.Errorf("signed for %v, it is %v", at, now)
	}
	if want := v.id + "/" + date[:8] + "/" + v.region + "/" + v.service + "/aws4_request"; parts[0] != want {
		return fmt.Errorf("credential = %q, want %q", parts[0], want)
	}
	signed := strings.Split(strings.TrimPrefix(parts[1], "SignedHeaders="), ";")
	must := []string{"content-length", "content-type", "host", "x-amz-date", "x-amz-target"}
	if v.token != "" {
		must = append(must, "x-amz-security-token")
	}
	if got := r.Header.Get("X-Amz-Security-Token"); got != v.token {
		return fmt.Errorf("token = %q, want %q", got, v.token)
	}
	for _, name := range must {
		if !slices.Contains(signed, name) {
			return fmt.Errorf("%s is not signed, only %v", name, signed)
		}
	}
	if want := v.sign(r, body, date, signed); parts[2] != "Signature="+want {
		return fmt.Errorf("%s, want Signature=%s", parts[2], want)
	}
	return nil
}

// The vectors are those of the published "AWS Signature Version 4 test suite".
func TestVerifierAgreesWithPublishedVectors(t *testing.T) {
	v := verifier{id: "AKIDEXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", region: "us-east-1", service: "service"}
	const token = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="
	const date = "20150830T123600Z"
	for _, tc := range []struct {
		name, method, uri, body string
		header                  http.Header
		signed                  []string
		want                    string
	}{
		{"get-vanilla", "GET", "/", "", http.Header{"X-Amz-Date": {date}}, []string{"host", "x-amz-date"}, "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{"post-vanilla", "POST", "/", "", http.Header{"X-Amz-Date": {date}}, []string{"host", "x-amz-date"}, "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		{"post-sts-header-before", "POST", "/", "", http.Header{"X-Amz-Date": {date}, "X-Amz-Security-Token": {token}}, []string{"host", "x-amz-date", "x-amz-security-token"}, "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"},
		{"post-x-www-form-urlencoded", "POST", "/", "Param1=value1", http.Header{"X-Amz-Date": {date}, "Content-Type": {"application/x-www-form-urlencoded"}}, []string{"content-type", "host", "x-amz-date"}, "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &http.Request{Method: tc.method, RequestURI: tc.uri, URL: &url.URL{Path: "/"}, Host: "example.amazonaws.com", Header: tc.header}
			if got := v.sign(r, []byte(tc.body), date, tc.signed); got != tc.want {
				t.Errorf("signature = %s, want %s", got, tc.want)
			}
		})
	}
}

// body reads a request's body whole.
func readAll(r io.Reader) []byte {
	var b bytes.Buffer
	b.ReadFrom(r)
	return b.Bytes()
}
