package s3store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"go.uber.org/goleak"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/claim/internal/storetest"
	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/internal/peers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// static hands out fixed credentials.
type static struct{ id, secret, token string }

func (s static) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: s.id, SecretAccessKey: s.secret, SessionToken: s.token, Source: "test"}, nil
}

var testCredentials = static{id: "AKIDEXAMPLE", secret: "a/secret+key"}

func noEnv(string) string { return "" }

func newStore(t testing.TB, url string, o Options) *Store {
	t.Helper()
	u, err := claim.ParseStoreURL(url)
	if err != nil {
		t.Fatal(err)
	}
	if o.Credentials == nil {
		o.Credentials = testCredentials
	}
	if o.Getenv == nil {
		o.Getenv = noEnv
	}
	s, err := New(u, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// double is a server that answers as the test says and notes what it was asked.
type double struct {
	*httptest.Server
	mu       sync.Mutex
	requests []request
	answer   func(n int, w http.ResponseWriter, r request) // n counts from 0
}

type request struct {
	method, uri, host string
	header            http.Header
	body              []byte
}

func newDouble(t testing.TB, answer func(n int, w http.ResponseWriter, r request)) *double {
	d := &double{answer: answer}
	d.Server = httptest.NewServer(d)
	t.Cleanup(d.Close)
	return d
}

func (d *double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	q := request{method: r.Method, uri: r.RequestURI, host: r.Host, header: r.Header.Clone(), body: body}
	d.mu.Lock()
	n := len(d.requests)
	d.requests = append(d.requests, q)
	d.mu.Unlock()
	d.answer(n, w, q)
}

func (d *double) seen() []request {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.requests
}

func (d *double) url() string { return "s3://claims-bucket?region=eu-west-1&endpoint=" + d.URL }

func stored(_ int, w http.ResponseWriter, r request) {
	w.Header().Set("ETag", `"etag"`)
	if sum := r.header.Get("X-Amz-Checksum-Crc32"); sum != "" {
		w.Header().Set("X-Amz-Checksum-Crc32", sum)
	}
}

func errorXML(code, extra string) string {
	return `<?xml version="1.0" encoding="UTF-8"?>` + "\n<Error><Code>" + code + "</Code><Message>the server's words</Message>" + extra + "<RequestId>R</RequestId></Error>"
}

func TestPutOnTheWire(t *testing.T) {
	d := newDouble(t, stored)
	s := newStore(t, d.url(), Options{Credentials: static{"AKIDEXAMPLE", "secret", "session"}})
	o, _, _ := storetest.Object(t, "acme", "example", bytes.Repeat([]byte("body"), 1<<20)) // above the SDK's threshold for Expect
	if err := s.Put(t.Context(), o); err != nil {
		t.Fatalf("Put: %v", err)
	}
	all := o.AppendTo(nil)
	seen := d.seen()
	if len(seen) != 1 {
		t.Fatalf("%d requests, want 1", len(seen))
	}
	r := seen[0]
	// S3 decodes the path once; "=" is escaped by signers and taken either way by servers.
	if want := "/claims-bucket/claims/tenant%3Dacme/dt%3D2026-09-24/01M39VMD8RA3C5HR4RBV67Y000?x-id=PutObject"; r.method != "PUT" || r.uri != want {
		t.Errorf("request is %s %s, want PUT %s", r.method, r.uri, want)
	}
	if !bytes.Equal(r.body, all) {
		t.Error("the body on the wire isn't the object")
	}
	sha := sha256.Sum256(all)
	for name, want := range map[string]string{
		"Content-Type":         "application/zip",
		"Content-Length":       strconv.Itoa(len(all)),
		"X-Amz-Checksum-Crc32": base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(all))),
		"X-Amz-Content-Sha256": hex.EncodeToString(sha[:]), // signed, since the link isn't encrypted
		"X-Amz-Security-Token": "session",
		"Expect":               "",
		"Content-Encoding":     "", // aws-chunked is what other servers trip over
	} {
		if got := r.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	auth := r.header.Get("Authorization")
	if !strings.HasPrefix(auth, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/") || !strings.Contains(auth, "/eu-west-1/s3/aws4_request") || !strings.Contains(auth, "x-amz-security-token") {
		t.Errorf("Authorization is %q", auth)
	}
}

// The request passes through a transport that takes it apart and puts it together again. What
// arrives must be what was signed, so it is signed once more from what arrived.
func TestWhatIsSignedIsWhatIsOnTheWire(t *testing.T) {
	d := newDouble(t, stored)
	credentials := static{"AKIDEXAMPLE", "a/secret+key", "session"}
	o, _, _ := storetest.Object(t, "aZ09_-", "example", []byte("body"))
	if err := newStore(t, d.url(), Options{Credentials: credentials}).Put(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	got := d.seen()[0]
	again, err := http.NewRequest(got.method, "http://"+got.host+got.uri, bytes.NewReader(got.body))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(got.header.Get("Authorization"), "SignedHeaders=")
	names, _, _ := strings.Cut(rest, ",")
	for name := range strings.SplitSeq(names, ";") {
		if name != "host" && name != "content-length" {
			again.Header[http.CanonicalHeaderKey(name)] = got.header.Values(name)
		}
	}
	at, err := time.Parse("20060102T150405Z", got.header.Get("X-Amz-Date"))
	if err != nil {
		t.Fatal(err)
	}
	keys, _ := credentials.Retrieve(t.Context())
	err = v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }).
		SignHTTP(t.Context(), keys, again, got.header.Get("X-Amz-Content-Sha256"), "s3", "eu-west-1", at)
	if err != nil {
		t.Fatal(err)
	}
	if want := again.Header.Get("Authorization"); got.header.Get("Authorization") != want {
		t.Errorf("Authorization is\n%s\nand what arrived would be signed\n%s", got.header.Get("Authorization"), want)
	}
}

// Whatever is not the word of S3 for this object must not let the message out.
func TestPutIsConfirmedOnlyByS3(t *testing.T) {
	for _, tc := range []struct {
		why    string
		answer func(w http.ResponseWriter, r request)
		code   string // empty: confirmed
	}{
		{"the same checksum", func(w http.ResponseWriter, r request) { stored(0, w, r) }, ""},
		{"a server that knows no checksums", func(w http.ResponseWriter, _ request) { w.Header().Set("ETag", `"x"`) }, ""},
		{"another checksum", func(w http.ResponseWriter, _ request) {
			w.Header().Set("ETag", `"x"`)
			w.Header().Set("X-Amz-Checksum-Crc32", "AAAAAA==")
		}, "checksum_mismatch"},
		{"a proxy's page", func(w http.ResponseWriter, _ request) { fmt.Fprint(w, "<html>welcome</html>") }, "unexpected_reply"},
		{"nothing", func(http.ResponseWriter, request) {}, "unexpected_reply"},
		{"204", func(w http.ResponseWriter, _ request) { w.WriteHeader(204) }, "unexpected_reply"},
		{"a body without end", func(w http.ResponseWriter, _ request) {
			w.Header().Set("ETag", `"x"`)
			for range 64 {
				_, _ = w.Write(make([]byte, 64<<10))
			}
		}, "unexpected_reply"},
	} {
		d := newDouble(t, func(_ int, w http.ResponseWriter, r request) { tc.answer(w, r) })
		o, _, _ := storetest.Object(t, "acme", "example", []byte("body"))
		err := newStore(t, d.url(), Options{}).Put(t.Context(), o)
		storetest.PutOutcome(t, tc.why, err, tc.code)
		if n := len(d.seen()); n != 1 {
			t.Errorf("%s: %d requests, want 1", tc.why, n)
		}
	}
}

func TestErrorsAreClassified(t *testing.T) {
	const (
		transient = classify.Transient
		throttled = classify.Throttled
		config    = classify.Config
		permanent = classify.Permanent
	)
	for _, tc := range []struct {
		status int
		body   string
		class  classify.Class
		code   string
		says   string // in the error's text
	}{
		// The bucket, the rights or the credentials are wrong, and no hook is to blame.
		{404, errorXML("NoSuchBucket", ""), config, "NoSuchBucket", "make the bucket claims-bucket"},
		{403, errorXML("AccessDenied", ""), config, "AccessDenied", "grant s3:PutObject on claims-bucket/claims/*"},
		{403, errorXML("AllAccessDisabled", ""), config, "AllAccessDisabled", ""},
		{403, errorXML("InvalidAccessKeyId", ""), config, "InvalidAccessKeyId", ""},
		{403, errorXML("SignatureDoesNotMatch", ""), config, "SignatureDoesNotMatch", ""},
		{400, errorXML("InvalidToken", ""), config, "InvalidToken", ""},
		{403, errorXML("NotSignedUp", ""), config, "NotSignedUp", ""},
		{400, errorXML("InvalidBucketName", ""), config, "InvalidBucketName", ""},
		{400, errorXML("KMS.DisabledException", ""), config, "KMS.DisabledException", ""},
		{400, errorXML("KMS.NotFoundException", ""), config, "KMS.NotFoundException", ""},
		// Another region: the server says which.
		{301, errorXML("PermanentRedirect", "<Endpoint>claims-bucket.s3.us-west-2.amazonaws.com</Endpoint>"), config, "PermanentRedirect", "the bucket claims-bucket is in us-west-2, not in eu-west-1: set ?region=us-west-2"},
		{400, errorXML("AuthorizationHeaderMalformed", "<Region>us-west-2</Region>"), config, "AuthorizationHeaderMalformed", "set ?region=us-west-2"},
		{400, errorXML("IllegalLocationConstraintException", ""), config, "IllegalLocationConstraintException", "set ?region="},
		// Slow down; the code decides, whatever the status, and the status where there is no code.
		{503, errorXML("SlowDown", ""), throttled, "SlowDown", ""},
		{400, errorXML("ThrottlingException", ""), throttled, "ThrottlingException", ""},
		{429, errorXML("TooManyRequests", ""), throttled, "TooManyRequests", ""},
		{503, errorXML("ServiceUnavailable", ""), throttled, "ServiceUnavailable", ""},
		{503, errorXML("SomethingNew", ""), throttled, "SomethingNew", ""},
		{503, "", throttled, "unexpected_reply", "(empty)"},
		{429, "<html>calm down</html>", throttled, "unexpected_reply", "calm down"},
		// It may work the next time.
		{500, errorXML("InternalError", ""), transient, "InternalError", ""},
		{400, errorXML("RequestTimeout", ""), transient, "RequestTimeout", ""},
		{400, errorXML("BadDigest", ""), transient, "BadDigest", ""},
		{400, errorXML("IncompleteBody", ""), transient, "IncompleteBody", ""},
		{400, errorXML("ExpiredToken", ""), transient, "ExpiredToken", ""},
		{409, errorXML("OperationAborted", ""), transient, "OperationAborted", ""},
		{307, errorXML("TemporaryRedirect", ""), transient, "TemporaryRedirect", ""}, // a bucket that has just been made
		{403, errorXML("RequestTimeTooSkewed", ""), transient, "RequestTimeTooSkewed", "clock"},
		// Not S3 talking: never a reason to set a hook aside.
		{502, "<html><h1>Bad Gateway</h1>", transient, "unexpected_reply", "Bad Gateway"},
		{400, "<html>who are you?</html>", transient, "unexpected_reply", "who are you?"},
		{403, "", transient, "unexpected_reply", "(empty)"},
		{404, "not found", transient, "unexpected_reply", "not found"},
		{302, "", transient, "unexpected_reply", ""},
		{400, errorXML("SomethingNew", ""), transient, "SomethingNew", ""},
		{400, "<Error><Code>Acc", transient, "unexpected_reply", "Acc"}, // cut in half
		// This one object is too big for this server.
		{400, errorXML("EntityTooLarge", ""), permanent, "EntityTooLarge", ""},
	} {
		d := newDouble(t, func(_ int, w http.ResponseWriter, _ request) {
			if strings.Contains(tc.says, "us-west-2") {
				w.Header().Set("X-Amz-Bucket-Region", "us-west-2")
			}
			w.Header().Set("Location", "http://192.0.2.1/")
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(tc.status)
			_, _ = io.WriteString(w, tc.body)
		})
		o, _, _ := storetest.Object(t, "acme", "example", []byte("the hook's body"))
		err := newStore(t, d.url(), Options{}).Put(t.Context(), o)
		e := classify.Of(err)
		if e == nil || e.Class != tc.class || tc.code != "" && e.Code != tc.code || e.Status != tc.status || e.Service != "s3" || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%d %s: Put = %v, want %v %s that says %q", tc.status, tc.body, err, tc.class, tc.code, tc.says)
			continue
		}
		if e.RetryAfter != 7*time.Second {
			t.Errorf("%d %s: RetryAfter = %v, want 7s", tc.status, tc.body, e.RetryAfter)
		}
		if strings.Contains(err.Error(), "hook's body") || strings.Contains(err.Error(), testCredentials.secret) {
			t.Errorf("%d %s: the error quotes what it must not: %v", tc.status, tc.body, err)
		}
		if n := len(d.seen()); n != 1 {
			t.Errorf("%d %s: %d requests, want 1: retries are the sender's", tc.status, tc.body, n)
		}
	}
}

func TestServerThatIsAwayIsTransient(t *testing.T) {
	s := newStore(t, "s3://claims-bucket?region=eu-west-1&endpoint=http://127.0.0.1:"+peers.FreePort(t), Options{})
	o, _, _ := storetest.Object(t, "acme", "example", nil)
	if e := classify.Of(s.Put(t.Context(), o)); e == nil || e.Class != classify.Transient || e.Service != "s3" || e.Code != "not_sent" {
		t.Errorf("Put = %v, want transient s3 not_sent", e)
	}
}

func TestPutGivenUpWrapsTheContextsError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	d := newDouble(t, func(int, http.ResponseWriter, request) { cancel(); <-t.Context().Done() })
	s := newStore(t, d.url(), Options{})
	o, _, _ := storetest.Object(t, "acme", "example", nil)
	err := s.Put(ctx, o)
	if e := classify.Of(err); !errors.Is(err, context.Canceled) || e.Class != classify.Transient {
		t.Errorf("Put = %v, want transient around context.Canceled", err)
	}
	d.CloseClientConnections()
}

// A kept-alive connection that the server closes while it is idle is found out by the next request.
func TestStaleConnectionCostsNoError(t *testing.T) {
	d := newDouble(t, stored)
	s := newStore(t, d.url(), Options{})
	o, _, _ := storetest.Object(t, "acme", "example", []byte("body"))
	for i := range 5 {
		if err := s.Put(t.Context(), o); err != nil {
			t.Fatalf("Put %d: %v", i, err)
		}
		d.CloseClientConnections()
	}
}

// refreshing hands out a new token for each Invalidate of the current one.
type refreshing struct {
	mu          sync.Mutex
	generation  int
	retrieved   int
	invalidated []string
}

func (r *refreshing) Retrieve(context.Context) (aws.Credentials, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retrieved++
	return aws.Credentials{AccessKeyID: "A", SecretAccessKey: "S", SessionToken: fmt.Sprint("token", r.generation)}, nil
}

func (r *refreshing) Invalidate(c aws.Credentials) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.invalidated = append(r.invalidated, c.SessionToken)
	r.generation++
}

func TestExpiredTokenIsReplacedOnce(t *testing.T) {
	for _, tc := range []struct {
		valid    string // the token that the server takes
		requests int
		class    classify.Class
	}{
		{"token1", 2, 0},
		{"none", 2, classify.Transient}, // expired twice: the sender retries, later
	} {
		d := newDouble(t, func(n int, w http.ResponseWriter, r request) {
			if r.header.Get("X-Amz-Security-Token") == tc.valid {
				stored(n, w, r)
				return
			}
			w.WriteHeader(400)
			_, _ = io.WriteString(w, errorXML("ExpiredToken", ""))
		})
		source := &refreshing{}
		s := newStore(t, d.url(), Options{Credentials: source})
		o, _, _ := storetest.Object(t, "acme", "example", []byte("body"))
		err := s.Put(t.Context(), o)
		if (err == nil) != (tc.valid == "token1") || err != nil && classify.Of(err).Code != "ExpiredToken" {
			t.Errorf("server takes %s: Put = %v", tc.valid, err)
		}
		if len(d.seen()) != tc.requests || len(source.invalidated) != 1 || source.invalidated[0] != "token0" {
			t.Errorf("server takes %s: %d requests, invalidated %q; want %d and the first token once", tc.valid, len(d.seen()), source.invalidated, tc.requests)
		}
	}
	// Without a way to refresh there is nothing to try.
	d := newDouble(t, func(_ int, w http.ResponseWriter, _ request) {
		w.WriteHeader(400)
		_, _ = io.WriteString(w, errorXML("ExpiredToken", ""))
	})
	o, _, _ := storetest.Object(t, "acme", "example", nil)
	if err := newStore(t, d.url(), Options{}).Put(t.Context(), o); err == nil || len(d.seen()) != 1 {
		t.Errorf("Put with fixed credentials = %v after %d requests, want an error after 1", err, len(d.seen()))
	}
}

type failing struct{ err error }

func (f failing) Retrieve(context.Context) (aws.Credentials, error) { return aws.Credentials{}, f.err }

func TestMissingCredentialsKeepTheirClass(t *testing.T) {
	d := newDouble(t, stored)
	o, _, _ := storetest.Object(t, "acme", "example", nil)
	for _, tc := range []struct {
		err   error
		class classify.Class
		code  string
	}{
		{errors.New("no IMDS"), classify.Transient, "no_credentials"},
		{classify.Transientf("sqs", "no_credentials", "tried the environment"), classify.Transient, "no_credentials"},
		{classify.Configf("sqs", "InvalidIdentityToken", "refused"), classify.Config, "InvalidIdentityToken"},
	} {
		err := newStore(t, d.url(), Options{Credentials: failing{tc.err}}).Put(t.Context(), o)
		if e := classify.Of(err); e == nil || e.Class != tc.class || e.Code != tc.code || e.Service != "s3" || !errors.Is(err, tc.err) {
			t.Errorf("%v: Put = %v, want %v %s of s3 around it", tc.err, err, tc.class, tc.code)
		}
	}
	if n := len(d.seen()); n != 0 {
		t.Errorf("%d requests without credentials, want none", n)
	}
}

// A clock that is wrong is learnt from the first refusal, so that the next try is signed for the
// server's time.
func TestWrongClockIsLearnt(t *testing.T) {
	ahead := time.Now().Add(20 * time.Minute).UTC()
	d := newDouble(t, func(n int, w http.ResponseWriter, r request) {
		w.Header().Set("Date", ahead.Format(http.TimeFormat))
		signed, err := time.Parse("20060102T150405Z", r.header.Get("X-Amz-Date"))
		if err != nil || signed.Sub(ahead).Abs() > 15*time.Minute {
			w.WriteHeader(403)
			_, _ = io.WriteString(w, errorXML("RequestTimeTooSkewed", ""))
			return
		}
		stored(n, w, r)
	})
	s := newStore(t, d.url(), Options{})
	o, _, _ := storetest.Object(t, "acme", "example", nil)
	if e := classify.Of(s.Put(t.Context(), o)); e == nil || e.Class != classify.Transient {
		t.Errorf("first Put = %v, want transient", e)
	}
	if err := s.Put(t.Context(), o); err != nil {
		t.Errorf("second Put = %v, want it signed for the server's clock", err)
	}
}

func TestReadRangeStaysWithinItsChunks(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), 200_000) // 2 MB
	d := newDouble(t, func(_ int, w http.ResponseWriter, r request) {
		q, _ := http.NewRequest("GET", "http://x/", nil)
		q.Header.Set("Range", r.header.Get("Range"))
		w.Header().Set("ETag", `"x"`)
		http.ServeContent(w, q, "", time.Time{}, bytes.NewReader(content))
	})
	s := newStore(t, d.url(), Options{})
	for _, tc := range []struct{ offset, length, want int64 }{
		{0, 10, 10}, {5, 1_500_000, 1_500_000}, {1_999_990, 100, 10}, {0, 1 << 32, 2_000_000}, {7, 0, 0},
	} {
		got, err := s.ReadRange(t.Context(), "key", tc.offset, tc.length)
		if err != nil || int64(len(got)) != tc.want || !bytes.Equal(got, content[tc.offset:tc.offset+tc.want]) {
			t.Errorf("ReadRange(%d, %d) = %d bytes, %v, want %d", tc.offset, tc.length, len(got), err, tc.want)
		}
	}

	whole := newDouble(t, func(_ int, w http.ResponseWriter, _ request) { _, _ = w.Write(content[:5000]) })
	if got, err := newStore(t, whole.url(), Options{}).ReadRange(t.Context(), "key", 4, 8); err == nil {
		t.Errorf("ReadRange from a server that ignores ranges = %q, want an error", got)
	}
	none := newDouble(t, func(_ int, w http.ResponseWriter, _ request) {
		w.WriteHeader(404)
		_, _ = io.WriteString(w, errorXML("NoSuchKey", ""))
	})
	_, err := newStore(t, none.url(), Options{}).ReadRange(t.Context(), "key", 4, 8)
	if e := classify.Of(err); e == nil || e.Class != classify.Permanent || e.Code != claim.CodeNotFound {
		t.Errorf("ReadRange of nothing = %v, want permanent %s", err, claim.CodeNotFound)
	}
}

// The right to remove isn't needed to send.
func TestCheckTellsWhatItLeft(t *testing.T) {
	d := newDouble(t, func(n int, w http.ResponseWriter, r request) {
		if r.method == "DELETE" {
			w.WriteHeader(403)
			_, _ = io.WriteString(w, errorXML("AccessDenied", ""))
			return
		}
		stored(n, w, r)
	})
	err := newStore(t, d.url(), Options{}).Check(t.Context())
	if left, ok := errors.AsType[*claim.LeftoverError](err); !ok || left.Key != claim.ProbeKey {
		t.Errorf("Check = %v, want a LeftoverError for %s", err, claim.ProbeKey)
	}
	refused := newDouble(t, func(_ int, w http.ResponseWriter, _ request) {
		w.WriteHeader(403)
		_, _ = io.WriteString(w, errorXML("AccessDenied", ""))
	})
	err = newStore(t, refused.url(), Options{}).Check(t.Context())
	if _, left := errors.AsType[*claim.LeftoverError](err); left || classify.Of(err).Class != classify.Config {
		t.Errorf("Check of a bucket that refuses = %v, want config", err)
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	env := func(m map[string]string) func(string) string { return func(k string) string { return m[k] } }
	for _, tc := range []struct {
		why, url string
		o        Options
		says     string
	}{
		{"no region", "s3://bucket", Options{Credentials: testCredentials}, "region"},
		{"no credentials", "s3://bucket?region=eu-west-1", Options{}, "credentials"},
		{"another scheme", "gs://bucket", Options{Credentials: testCredentials, Region: "eu-west-1"}, "s3://"},
		{"an endpoint from the environment that is none", "s3://bucket?region=eu-west-1", Options{Credentials: testCredentials, Getenv: env(map[string]string{"AWS_ENDPOINT_URL": "localhost:4566"})}, "AWS_ENDPOINT_URL"},
	} {
		if tc.o.Getenv == nil {
			tc.o.Getenv = noEnv
		}
		u, err := claim.ParseStoreURL(tc.url)
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(u, tc.o)
		if e := classify.Of(err); s != nil || e == nil || e.Class != classify.Config || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: New = %v, want config that says %q", tc.why, err, tc.says)
		}
	}
}

func TestEndpoint(t *testing.T) {
	for _, tc := range []struct {
		why, explicit string
		env           map[string]string
		want          string
	}{
		{"nothing is AWS", "", nil, ""},
		{"the URL comes first", "http://a", map[string]string{"AWS_ENDPOINT_URL_S3": "http://b"}, "http://a"},
		{"then the service's variable", "", map[string]string{"AWS_ENDPOINT_URL_S3": "http://b/", "AWS_ENDPOINT_URL": "http://c"}, "http://b"},
		{"then the common one", "", map[string]string{"AWS_ENDPOINT_URL_S3": "", "AWS_ENDPOINT_URL": " http://c "}, "http://c"},
		{"unless it is to be ignored", "", map[string]string{"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true", "AWS_ENDPOINT_URL": "http://c"}, ""},
	} {
		got, err := resolveEndpoint(tc.explicit, func(k string) string { return tc.env[k] })
		if err != nil || got != tc.want {
			t.Errorf("%s: resolveEndpoint = %q, %v, want %q", tc.why, got, err, tc.want)
		}
	}
}
