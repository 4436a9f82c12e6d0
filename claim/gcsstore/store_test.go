package gcsstore

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/claim/internal/storetest"
	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/internal/peers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const bucket = "claims_bucket"

// cloud is a strict double of the few requests that the store makes: it knows one bucket, checks
// the token, and refuses whatever it does not expect.
type cloud struct {
	*httptest.Server
	t *testing.T

	mu      sync.Mutex
	token   string // the one that is accepted; empty: an Authorization header is an error
	objects map[string][]byte
	seen    []string                                                 // method and URI of each request
	fault   func(n int, w http.ResponseWriter, r *http.Request) bool // n counts from 0; true: it has answered
	locked  bool                                                     // objects can't be rewritten or removed
	blind   bool                                                     // objects can't be looked at
}

// newCloud serves over TLS, because a token goes over nothing else, unless plain is asked for.
func newCloud(t *testing.T, plain bool) *cloud {
	c := &cloud{t: t, objects: make(map[string][]byte)}
	c.Server = httptest.NewUnstartedServer(c)
	c.Server.Config.ErrorLog = nil
	if plain {
		c.Start()
	} else {
		c.token = "token0"
		c.StartTLS()
	}
	t.Cleanup(c.Close)
	return c
}

func googleError(w http.ResponseWriter, status int, reason, message string) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
		"code": status, "message": message,
		"errors": []any{map[string]any{"message": message, "domain": "global", "reason": reason}},
	}})
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.seen)
	c.seen = append(c.seen, r.Method+" "+r.RequestURI)
	if c.fault != nil && c.fault(n, w, r) {
		return
	}
	got := r.Header.Get("Authorization")
	switch {
	case c.token == "" && got != "":
		c.t.Errorf("a token was sent where none may be: %s", r.RequestURI)
	case c.token != "" && got != "Bearer "+c.token:
		googleError(w, 401, "authError", "Invalid Credentials")
		return
	}
	// The path is taken as it is on the wire: slashes of a key must be escaped in it.
	path := strings.Split(strings.SplitN(r.RequestURI, "?", 2)[0], "/")
	query := r.URL.Query()
	switch {
	case r.Method == "POST" && len(path) == 7 && strings.Join(path[:5], "/") == "/upload/storage/v1/b" && path[6] == "o":
		if path[5] != bucket {
			googleError(w, 404, "notFound", "The specified bucket does not exist.")
			return
		}
		name := query.Get("name")
		if query.Get("uploadType") != "media" || name == "" || len(query) != 2 || r.Header.Get("Content-Type") != "application/zip" || r.ContentLength != int64(len(body)) {
			c.t.Errorf("upload is %s with %v", r.RequestURI, r.Header)
		}
		if _, ok := c.objects[name]; ok && c.locked {
			googleError(w, 403, "forbidden", "x@y.iam does not have storage.objects.delete access to the Google Cloud Storage object.")
			return
		}
		c.objects[name] = body
		c.describe(w, name)
	case len(path) == 7 && strings.Join(path[:4], "/") == "/storage/v1/b" && path[5] == "o":
		name, err := url.PathUnescape(path[6])
		object, ok := c.objects[name]
		switch {
		case path[4] != bucket:
			googleError(w, 404, "notFound", "The specified bucket does not exist.")
		case err != nil || !ok:
			googleError(w, 404, "notFound", "No such object: "+bucket+"/"+name)
		case r.Method == "DELETE" && c.locked:
			googleError(w, 403, "forbidden", "x@y.iam does not have storage.objects.delete access to the Google Cloud Storage object.")
		case r.Method == "DELETE":
			delete(c.objects, name)
			w.WriteHeader(204)
		case r.Method == "GET" && c.blind:
			googleError(w, 403, "forbidden", "x@y.iam does not have storage.objects.get access to the Google Cloud Storage object.")
		case r.Method == "GET" && query.Get("alt") == "media":
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(object))
		case r.Method == "GET" && len(query) == 0:
			c.describe(w, name)
		default:
			c.t.Errorf("unexpected request %s %s", r.Method, r.RequestURI)
		}
	default:
		c.t.Errorf("unexpected request %s %s", r.Method, r.RequestURI)
		w.WriteHeader(400)
	}
}

func (c *cloud) describe(w http.ResponseWriter, name string) {
	_ = json.NewEncoder(w).Encode(describe(name, c.objects[name]))
}

func describe(name string, object []byte) map[string]any {
	sum := md5.Sum(object)
	crc := binary.BigEndian.AppendUint32(nil, crc32.Checksum(object, crc32.MakeTable(crc32.Castagnoli)))
	return map[string]any{
		"kind": "storage#object", "name": name, "bucket": bucket, "generation": "1",
		"size":    strconv.Itoa(len(object)),
		"md5Hash": base64.StdEncoding.EncodeToString(sum[:]),
		"crc32c":  base64.StdEncoding.EncodeToString(crc),
	}
}

func (c *cloud) requests() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen
}

// tokens hands out token0, and the next number after each Invalidate of the current one.
type tokens struct {
	mu          sync.Mutex
	n           int
	asked       int
	invalidated []string
	err         error
}

func (s *tokens) Token(context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return fmt.Sprint("token", s.n), s.err
}

func (s *tokens) Invalidate(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.invalidated = append(s.invalidated, token)
	s.n++
}

func newStore(t *testing.T, c *cloud, o Options) *Store {
	t.Helper()
	o.Endpoint = c.URL
	if o.Tokens == nil {
		o.Tokens = &tokens{}
	}
	if transport, ok := c.Client().Transport.(*http.Transport); ok {
		o.TLS = transport.TLSClientConfig
	}
	return newStoreAt(t, "gs://"+bucket, o)
}

func newStoreAt(t *testing.T, text string, o Options) *Store {
	t.Helper()
	u, err := claim.ParseStoreURL(text)
	if err != nil {
		t.Fatal(err)
	}
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	s, err := New(u, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

func TestConformance(t *testing.T) {
	c := newCloud(t, false)
	storetest.Run(t, newStore(t, c, Options{}), func(t *testing.T, ref claim.Ref, o *claim.Object) {
		if !bytes.Equal(c.objects[ref.Key()], o.AppendTo(nil)) {
			t.Errorf("the bucket doesn't hold the object under %s", ref.Key())
		}
	})
}

func TestPutOnTheWire(t *testing.T) {
	c := newCloud(t, false)
	o, _, _ := storetest.Object(t, "acme", "example", []byte("body"))
	if err := newStore(t, c, Options{}).Put(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	want := "POST /upload/storage/v1/b/claims_bucket/o?uploadType=media&name=claims%2Ftenant%3Dacme%2Fdt%3D2026-09-24%2F01M39VMD8RA3C5HR4RBV67Y000"
	if got := c.requests(); len(got) != 1 || got[0] != want {
		t.Errorf("requests are %q, want %q", got, want)
	}
}

// Whatever is not the word of Cloud Storage for these bytes must not let the message out.
func TestPutIsConfirmedOnlyByTheBytes(t *testing.T) {
	with := func(change func(m map[string]any)) func(o *claim.Object) string {
		return func(o *claim.Object) string {
			m := describe(o.Key(), o.AppendTo(nil))
			change(m)
			b, _ := json.Marshal(m)
			return string(b)
		}
	}
	text := func(s string) func(*claim.Object) string { return func(*claim.Object) string { return s } }
	for _, tc := range []struct {
		why  string
		body func(o *claim.Object) string
		code string // empty: confirmed
	}{
		{"all of it right", with(func(map[string]any) {}), ""},
		{"no md5Hash, as for composed objects", with(func(m map[string]any) { delete(m, "md5Hash") }), ""},
		{"no crc32c, as from some emulators", with(func(m map[string]any) { delete(m, "crc32c") }), ""},
		{"the size as a number, as from some emulators", with(func(m map[string]any) { m["size"], _ = strconv.Atoi(m["size"].(string)) }), ""},
		{"another size", with(func(m map[string]any) { m["size"] = "1" }), "checksum_mismatch"},
		{"no size", with(func(m map[string]any) { delete(m, "size") }), "checksum_mismatch"},
		{"another crc32c", with(func(m map[string]any) { m["crc32c"] = "AAAAAA==" }), "checksum_mismatch"},
		{"another md5Hash alone", with(func(m map[string]any) { delete(m, "crc32c"); m["md5Hash"] = "AAAA" }), "checksum_mismatch"},
		{"no checksum", with(func(m map[string]any) { delete(m, "crc32c"); delete(m, "md5Hash") }), "unexpected_reply"},
		{"another object", with(func(m map[string]any) { m["name"] = "other" }), "unexpected_reply"},
		{"another bucket", with(func(m map[string]any) { m["bucket"] = "other" }), "unexpected_reply"},
		{"a proxy's page", text("<html>welcome</html>"), "unexpected_reply"},
		{"nothing", text(""), "unexpected_reply"},
		{"null", text("null"), "unexpected_reply"},
		{"JSON cut in half", text(`{"name":"cl`), "unexpected_reply"},
		{"more than a reply may be", text(`{"name":"` + strings.Repeat("x", 2<<20) + `"}`), "unexpected_reply"},
	} {
		c := newCloud(t, false)
		o, _, _ := storetest.Object(t, "acme", "example", []byte("body"))
		c.fault = func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			_, _ = io.WriteString(w, tc.body(o))
			return true
		}
		err := newStore(t, c, Options{}).Put(t.Context(), o)
		storetest.PutOutcome(t, tc.why, err, tc.code)
		if n := len(c.requests()); n != 1 {
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
	document := func(status int, reason string) string {
		w := httptest.NewRecorder()
		googleError(w, status, reason, "the server's words")
		return w.Body.String()
	}
	for _, tc := range []struct {
		status int
		body   string
		upload bool // the upload server's header is there
		class  classify.Class
		code   string
		says   string
	}{
		// The bucket, the rights or the credentials are wrong, and no hook is to blame.
		{404, document(404, "notFound"), false, config, "notFound", "make the bucket claims_bucket"},
		{403, document(403, "forbidden"), false, config, "forbidden", "grant storage.objects.create on claims_bucket"},
		{403, document(403, "accountDisabled"), false, config, "accountDisabled", ""},
		{403, document(403, "retentionPolicyNotMet"), false, config, "retentionPolicyNotMet", "grant storage.objects.get"},
		{403, `{"error":{"code":403,"message":"m","status":"PERMISSION_DENIED"}}`, false, config, "PERMISSION_DENIED", ""},
		// Quotas come as 403 and as 429.
		{403, document(403, "rateLimitExceeded"), false, throttled, "rateLimitExceeded", ""},
		{403, document(403, "userRateLimitExceeded"), false, throttled, "userRateLimitExceeded", ""},
		{403, document(403, "quotaExceeded"), false, throttled, "quotaExceeded", ""},
		{429, document(429, "rateLimitExceeded"), false, throttled, "rateLimitExceeded", ""},
		{503, document(503, "backendError"), false, throttled, "backendError", ""},
		{503, "", false, throttled, "unexpected_reply", "(empty)"},
		{429, "<html>calm down</html>", false, throttled, "unexpected_reply", "calm down"},
		// It may work the next time.
		{500, document(500, "backendError"), false, transient, "backendError", ""},
		{408, document(408, "uploadBrokenConnection"), false, transient, "uploadBrokenConnection", ""},
		{409, document(409, "conflict"), false, transient, "conflict", ""},
		{400, document(400, "invalid"), false, transient, "invalid", ""},
		// The upload server speaks in plain text and says who it is; a proxy doesn't.
		{403, "Forbidden", true, config, "unexpected_reply", "Forbidden"},
		{404, "Not Found", true, config, "unexpected_reply", "Not Found"},
		{403, "Forbidden", false, transient, "unexpected_reply", "Forbidden"},
		{404, "<html>no such page</html>", false, transient, "unexpected_reply", "no such page"},
		{400, "<html>who are you?</html>", false, transient, "unexpected_reply", "who are you?"},
		{502, "<html><h1>Bad Gateway</h1>", false, transient, "unexpected_reply", "Bad Gateway"},
		{302, "", false, transient, "unexpected_reply", ""},
		{400, `{"error":"invalid"}`, false, transient, "unexpected_reply", ""},
		{400, `[]`, false, transient, "unexpected_reply", ""},
		// This one object is too big.
		{413, document(413, "uploadTooLarge"), false, permanent, "uploadTooLarge", ""},
	} {
		c := newCloud(t, false)
		c.fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
			if r.Method != "POST" {
				return false
			}
			w.Header().Set("Location", "https://192.0.2.1/")
			w.Header().Set("Retry-After", "7")
			if tc.upload {
				w.Header().Set("X-GUploader-UploadID", "x")
			}
			w.WriteHeader(tc.status)
			_, _ = io.WriteString(w, tc.body)
			return true
		}
		o, _, _ := storetest.Object(t, "acme", "example", []byte("the hook's body"))
		err := newStore(t, c, Options{}).Put(t.Context(), o)
		e := classify.Of(err)
		if e == nil || e.Class != tc.class || e.Code != tc.code || e.Status != tc.status || e.Service != "gs" || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%d %s: Put = %v, want %v %s that says %q", tc.status, tc.body, err, tc.class, tc.code, tc.says)
			continue
		}
		if e.RetryAfter != 7*time.Second {
			t.Errorf("%d %s: RetryAfter = %v, want 7s", tc.status, tc.body, e.RetryAfter)
		}
		if strings.Contains(err.Error(), "hook's body") || strings.Contains(err.Error(), "token0") {
			t.Errorf("%d %s: the error quotes what it must not: %v", tc.status, tc.body, err)
		}
		uploads := 0
		for _, r := range c.requests() {
			if strings.HasPrefix(r, "POST ") {
				uploads++
			}
		}
		if uploads != 1 {
			t.Errorf("%d %s: %d uploads, want 1: retries are the sender's", tc.status, tc.body, uploads)
		}
	}
}

// The first try was stored and its answer lost. With the right to create only, or with a retention
// policy, the retry is refused; and yet the object is there.
func TestRetryOfWhatIsStoredSucceedsWithoutTheRightToRewrite(t *testing.T) {
	c := newCloud(t, false)
	s := newStore(t, c, Options{})
	o, ref, _ := storetest.Object(t, "acme", "example", []byte("body"))
	if err := s.Put(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	c.locked = true
	if err := s.Put(t.Context(), o); err != nil {
		t.Errorf("Put of what is there = %v, want nil", err)
	}
	// Other bytes under the key are not the object.
	c.objects[ref.Key()] = []byte("something else")
	if e := classify.Of(s.Put(t.Context(), o)); e == nil || e.Class != classify.Config || !strings.Contains(e.Error(), "storage.objects.delete") {
		t.Errorf("Put over other bytes = %v, want config", e)
	}
	// And without the right to look, nobody knows.
	c.objects[ref.Key()], c.blind = o.AppendTo(nil), true
	if e := classify.Of(s.Put(t.Context(), o)); e == nil || e.Class != classify.Config || !strings.Contains(e.Message, "grant storage.objects.get") {
		t.Errorf("Put without the right to look = %v, want config with advice", e)
	}
}

func TestMissingBucketIsConfig(t *testing.T) {
	c := newCloud(t, true)
	s := newStoreAt(t, "gs://another-bucket", Options{Endpoint: c.URL})
	o, ref, sum := storetest.Object(t, "acme", "example", nil)
	if e := classify.Of(s.Put(t.Context(), o)); e == nil || e.Class != classify.Config {
		t.Errorf("Put = %v, want config", e)
	}
	if e := classify.Of(s.Check(t.Context())); e == nil || e.Class != classify.Config {
		t.Errorf("Check = %v, want config", e)
	}
	_, err := claim.Redeem(t.Context(), s, ref, sum, -1)
	if e := classify.Of(err); e == nil || e.Class != classify.Config {
		t.Errorf("Redeem = %v, want config", err)
	}
}

func TestStaleTokenIsReplacedOnce(t *testing.T) {
	for _, tc := range []struct {
		accepted string
		ok       bool
	}{{"token1", true}, {"none", false}} {
		c := newCloud(t, false)
		c.token = tc.accepted
		source := &tokens{}
		s := newStore(t, c, Options{Tokens: source})
		o, _, _ := storetest.Object(t, "acme", "example", []byte("body"))
		err := s.Put(t.Context(), o)
		if e := classify.Of(err); (err == nil) != tc.ok || e != nil && (e.Class != classify.Config || e.Status != 401) {
			t.Errorf("server takes %s: Put = %v, want ok %v or config 401", tc.accepted, err, tc.ok)
		}
		if n := len(c.requests()); n != 2 || len(source.invalidated) == 0 || source.invalidated[0] != "token0" {
			t.Errorf("server takes %s: %d requests, invalidated %q; want 2 and the first token", tc.accepted, n, source.invalidated)
		}
	}
}

func TestTokenErrorsKeepTheirClass(t *testing.T) {
	c := newCloud(t, false)
	o, _, _ := storetest.Object(t, "acme", "example", nil)
	for _, tc := range []struct {
		err   error
		class classify.Class
		code  string
	}{
		{errors.New("no metadata server"), classify.Transient, "no_credentials"},
		{classify.Configf("pubsub", "invalid_grant", "the key was removed"), classify.Config, "invalid_grant"},
		{context.Canceled, classify.Transient, ""},
	} {
		err := newStore(t, c, Options{Tokens: &tokens{err: tc.err}}).Put(t.Context(), o)
		if e := classify.Of(err); e == nil || e.Class != tc.class || e.Code != tc.code || e.Service != "gs" || !errors.Is(err, tc.err) {
			t.Errorf("%v: Put = %v, want %v %q of gs around it", tc.err, err, tc.class, tc.code)
		}
	}
	if n := len(c.requests()); n != 0 {
		t.Errorf("%d requests without a token, want none", n)
	}
}

// A token over plain http is anybody's. The double fails the test if it sees one.
func TestTokenIsNeverSentOverPlainHTTP(t *testing.T) {
	c := newCloud(t, true)
	host := strings.TrimPrefix(c.URL, "http://")
	source := &tokens{}
	o, _, _ := storetest.Object(t, "acme", "example", nil)
	for _, options := range []Options{
		{Endpoint: c.URL},
		{Getenv: func(string) string { return host }},
		{Getenv: func(string) string { return " http://" + host + "/ " }},
	} {
		options.Tokens = source
		if err := newStoreAt(t, "gs://"+bucket, options).Put(t.Context(), o); err != nil {
			t.Errorf("Put: %v", err)
		}
	}
	if source.asked != 0 {
		t.Errorf("a token was asked for %d times, want none: an emulator needs no credentials", source.asked)
	}
	if n := len(c.requests()); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

func TestEndpoint(t *testing.T) {
	for _, tc := range []struct {
		explicit, env, want string
		token               bool
		says                string // error
	}{
		{"", "", "https://storage.googleapis.com", true, ""},
		{"", "  ", "https://storage.googleapis.com", true, ""},
		{"https://storage.example.com/", "localhost:1", "https://storage.example.com", true, ""},
		{"http://localhost:4443", "", "http://localhost:4443", false, ""},
		{"", "localhost:4443", "http://localhost:4443", false, ""},
		{"", "http://localhost:4443/", "http://localhost:4443", false, ""},
		{"", "https://localhost:4443", "https://localhost:4443", false, ""},
		{"", "[::1]:4443", "http://[::1]:4443", false, ""},
		{"", ":4443", "http://localhost:4443", false, ""},
		{"", "http://localhost:4443/storage/v1/", "", false, "STORAGE_EMULATOR_HOST"},
		{"", "ftp://localhost", "", false, "STORAGE_EMULATOR_HOST"},
		{"localhost:4443", "", "", false, "endpoint"},
	} {
		got, token, err := resolveEndpoint(tc.explicit, func(name string) string {
			if name != EmulatorVariable {
				t.Errorf("looked up %s", name)
			}
			return tc.env
		})
		if tc.says != "" {
			if e := classify.Of(err); e == nil || e.Class != classify.Config || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%q, %q: error is %v, want config that names %s", tc.explicit, tc.env, err, tc.says)
			}
			continue
		}
		if err != nil || got != tc.want || token != tc.token {
			t.Errorf("%q, %q: %q, token %v, %v; want %q, %v", tc.explicit, tc.env, got, token, err, tc.want, tc.token)
		}
	}
}

func TestServerThatIsAwayIsTransient(t *testing.T) {
	s := newStoreAt(t, "gs://"+bucket, Options{Endpoint: "http://127.0.0.1:" + peers.FreePort(t)})
	o, _, _ := storetest.Object(t, "acme", "example", nil)
	if e := classify.Of(s.Put(t.Context(), o)); e == nil || e.Class != classify.Transient || e.Service != "gs" || e.Code != "not_sent" {
		t.Errorf("Put = %v, want transient gs not_sent", e)
	}
}

func TestCheck(t *testing.T) {
	c := newCloud(t, false)
	s := newStore(t, c, Options{})
	if err := s.Check(t.Context()); err != nil || len(c.objects) != 0 {
		t.Errorf("Check = %v and left %d objects, want nil and none", err, len(c.objects))
	}
	// The right to remove isn't needed to send, nor is a second check refused by what the first
	// had to leave.
	c.locked = true
	for range 2 {
		err := s.Check(t.Context())
		if left, ok := errors.AsType[*claim.LeftoverError](err); !ok || left.Key != claim.ProbeKey {
			t.Errorf("Check = %v, want a LeftoverError for %s", err, claim.ProbeKey)
		}
	}
}

func TestNewRefusesAnotherScheme(t *testing.T) {
	u, err := claim.ParseStoreURL("dir:///tmp")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(u, Options{}); classify.Of(err).Class != classify.Config {
		t.Errorf("New = %v, want config", err)
	}
}
