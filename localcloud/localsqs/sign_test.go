package localsqs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// The published SigV4 test suite: get-vanilla, post-vanilla.
func TestSignatureOfPublishedVectors(t *testing.T) {
	const secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	for method, want := range map[string]string{
		http.MethodGet:  "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		http.MethodPost: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
	} {
		r, _ := http.NewRequest(method, "https://example.amazonaws.com/", nil)
		r.RequestURI = "/"
		r.Header.Set("X-Amz-Date", "20150830T123600Z")
		c := canonical(r, []string{"host", "x-amz-date"}, nil)
		if got := signature(secret, "20150830", "us-east-1", "service", "20150830T123600Z", c); got != want {
			t.Errorf("%s: signature %s, want %s of\n%s", method, got, want, c)
		}
	}
}

// signed is a request that the SDK's signer has signed, ready to be sent.
func signed(t *testing.T, url, body string, c aws.Credentials, region, service string, at time.Time) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("X-Amz-Target", "AmazonSQS.ListQueues")
	sum := sha256.Sum256([]byte(body))
	if err := v4.NewSigner().SignHTTP(context.Background(), c, r, hex.EncodeToString(sum[:]), service, region, at); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSignatures(t *testing.T) {
	good := aws.Credentials{AccessKeyID: "AKIA1", SecretAccessKey: "s/e+cret"}
	temporary := aws.Credentials{AccessKeyID: "ASIA2", SecretAccessKey: "s2", SessionToken: "token//=="}
	expired := aws.Credentials{AccessKeyID: "ASIA3", SecretAccessKey: "s3", SessionToken: "old"}
	now := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	s := New(Options{
		Region: "eu-west-1",
		Now:    func() time.Time { return now },
		Credentials: []Credential{
			{AccessKeyID: "AKIA1", SecretAccessKey: "s/e+cret"},
			{AccessKeyID: "ASIA2", SecretAccessKey: "s2", SessionToken: "token//==", Expires: now.Add(time.Second)},
			{AccessKeyID: "ASIA3", SecretAccessKey: "s3", SessionToken: "old", Expires: now},
		},
	})
	base := serve(t, s)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()

	with := func(c aws.Credentials, change func(*aws.Credentials)) aws.Credentials { change(&c); return c }
	none := func(*http.Request) {}
	for _, c := range []struct {
		name    string
		creds   aws.Credentials
		url     string
		region  string
		service string
		at      time.Duration
		change  func(*http.Request) // after signing
		status  int
		code    string
		query   string
	}{
		{name: "sound", creds: good},
		{name: "sound, with a session token", creds: temporary},
		{name: "a path, to be encoded twice", creds: good, url: base + "/a%20b/c+d/caf%C3%A9/"},
		{name: "a query", creds: good, url: base + "/?b=2&a=1&c"},
		{name: "14:59 behind", creds: good, at: -899 * time.Second},
		{name: "14:59 ahead", creds: good, at: 899 * time.Second},
		{name: "15:01 behind", creds: good, at: -901 * time.Second, status: 403, code: "InvalidSignatureException", query: "SignatureDoesNotMatch"},
		{name: "15:01 ahead", creds: good, at: 901 * time.Second, status: 403, code: "InvalidSignatureException", query: "SignatureDoesNotMatch"},
		{name: "a wrong secret", creds: with(good, func(c *aws.Credentials) { c.SecretAccessKey += "\n" }), status: 403, code: "InvalidSignatureException", query: "SignatureDoesNotMatch"},
		{name: "an unknown key", creds: with(good, func(c *aws.Credentials) { c.AccessKeyID = "AKIA9" }), status: 403, code: "UnrecognizedClientException", query: "InvalidClientTokenId"},
		{name: "another token", creds: with(temporary, func(c *aws.Credentials) { c.SessionToken = "x" }), status: 403, code: "UnrecognizedClientException", query: "InvalidClientTokenId"},
		{name: "no token", creds: with(temporary, func(c *aws.Credentials) { c.SessionToken = "" }), status: 403, code: "UnrecognizedClientException", query: "InvalidClientTokenId"},
		{name: "an expired token", creds: expired, status: 403, code: "ExpiredTokenException", query: "ExpiredToken"},
		{name: "another region", creds: good, region: "us-east-1", status: 403, code: "InvalidSignatureException", query: "SignatureDoesNotMatch"},
		{name: "another service", creds: good, service: "sns", status: 403, code: "InvalidSignatureException", query: "SignatureDoesNotMatch"},
		{name: "a changed body", creds: good, change: func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("[]")) }, status: 403, code: "InvalidSignatureException", query: "SignatureDoesNotMatch"},
		{name: "a changed action", creds: good, change: func(r *http.Request) { r.Header.Set("X-Amz-Target", "AmazonSQS.PurgeQueue") }, status: 403, code: "InvalidSignatureException", query: "SignatureDoesNotMatch"},
		{name: "another host", creds: good, change: func(r *http.Request) { r.Host = "localhost" }, status: 403, code: "InvalidSignatureException", query: "SignatureDoesNotMatch"},
		{name: "a header that is added after signing", creds: good, change: func(r *http.Request) { r.Header.Set("X-Amz-New", "1") }, status: 403, code: "InvalidSignatureException", query: "SignatureDoesNotMatch"},
		{name: "a token that is not signed", creds: temporary, change: func(r *http.Request) {
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), "x-amz-security-token;", "", 1))
		}, status: 403, code: "InvalidSignatureException", query: "SignatureDoesNotMatch"},
		{name: "no signature", creds: good, change: func(r *http.Request) { r.Header.Del("Authorization") }, status: 403, code: "MissingAuthenticationTokenException", query: "MissingAuthenticationToken"},
		{name: "another algorithm", creds: good, change: func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, status: 400, code: "IncompleteSignatureException", query: "IncompleteSignature"},
		{name: "half a header", creds: good, change: func(r *http.Request) { r.Header.Set("Authorization", algorithm+" Credential=a/b/c/d/e") }, status: 400, code: "IncompleteSignatureException", query: "IncompleteSignature"},
		{name: "no date", creds: good, change: func(r *http.Request) { r.Header.Del("X-Amz-Date") }, status: 400, code: "IncompleteSignatureException", query: "IncompleteSignature"},
		{name: "a scope too short", creds: good, change: func(r *http.Request) {
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), "/sqs/aws4_request", "", 1))
		}, status: 400, code: "IncompleteSignatureException", query: "IncompleteSignature"},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, region, service, change := base+"/", "eu-west-1", "sqs", none
			if c.url != "" {
				url = c.url
			}
			if c.region != "" {
				region = c.region
			}
			if c.service != "" {
				service = c.service
			}
			if c.change != nil {
				change = c.change
			}
			if c.status == 0 {
				c.status = 200
			}
			r := signed(t, url, "{}", c.creds, region, service, now.Add(c.at))
			r.Header.Set("X-Amzn-Query-Mode", "true") // not x-amz-: need not be signed
			change(r)
			resp, err := transport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != c.status || c.code != "" && !strings.Contains(string(body), "com.amazon.coral.service#"+c.code+`"`) {
				t.Errorf("answered %d %s, want %d %s", resp.StatusCode, body, c.status, c.code)
			}
			if q, _, _ := strings.Cut(resp.Header.Get("x-amzn-query-error"), ";"); q != c.query {
				t.Errorf("query error %q, want %q", q, c.query)
			}
		})
	}
}
