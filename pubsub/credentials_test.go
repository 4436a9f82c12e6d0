package pubsub

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

// roundTripper is a function in the place of a transport, so that look-ups work in a synctest bubble.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{
		"Content-Type": {"application/json"}, "Metadata-Flavor": {"Google"},
	}, Body: io.NopCloser(strings.NewReader(body))}
}

// newCredentials makes Credentials without a key file in reach, whose requests go to h.
func newCredentials(t *testing.T, opts CredentialOptions, h func(*http.Request) (*http.Response, error)) *Credentials {
	t.Helper()
	if opts.Getenv == nil {
		opts.Getenv = env()
	}
	c, err := NewCredentials(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if h != nil {
		c.issuer, c.local = roundTripper(h), roundTripper(h)
	}
	return c
}

func token(t *testing.T, c *Credentials) string {
	t.Helper()
	tok, err := c.Token(t.Context())
	if err != nil {
		t.Fatalf("Token: %v", err)
	}
	return tok
}

var privateKey = sync.OnceValue(func() string {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
})

func serviceAccount(project, tokenURI string) string {
	b, _ := json.Marshal(map[string]string{
		"type": "service_account", "project_id": project, "private_key_id": "k1", "private_key": privateKey(),
		"client_email": "sender@" + project + ".iam.gserviceaccount.com", "token_uri": tokenURI,
	})
	return string(b)
}

const issuerURI = "https://oauth2.example/token"

func TestServiceAccountKeyIsTradedForAToken(t *testing.T) {
	c := newCredentials(t, CredentialOptions{JSON: serviceAccount("acme", issuerURI) + "\n"}, func(r *http.Request) (*http.Response, error) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.String() != issuerURI || !strings.Contains(string(body), "assertion=") {
			t.Errorf("request to %s with %.40s", r.URL, body)
		}
		return answer(200, `{"access_token":"ya29.a","expires_in":3600,"token_type":"Bearer"}`), nil
	})
	if got := token(t, c); got != "ya29.a" {
		t.Errorf("token %q", got)
	}
	if got := c.Source(); got != "credentials_json" {
		t.Errorf("source %q", got)
	}
	if p, err := c.Project(t.Context()); p != "acme" || err != nil {
		t.Errorf("project %q, %v, want acme", p, err)
	}
}

func TestExternalAccountReadsItsTokenFileEachTime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "oidc")
	config := fmt.Sprintf(`{"type":"external_account","audience":"//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/x",
		"subject_token_type":"urn:ietf:params:oauth:token-type:jwt","token_url":"https://sts.example/v1/token","credential_source":{"file":%q}}`, file)
	c := newCredentials(t, CredentialOptions{JSON: config}, func(r *http.Request) (*http.Response, error) {
		_ = r.ParseForm()
		return answer(200, fmt.Sprintf(`{"access_token":"for-%s","expires_in":3600,"token_type":"Bearer","issued_token_type":"urn:ietf:params:oauth:token-type:access_token"}`, r.PostForm.Get("subject_token"))), nil
	})
	for _, subject := range []string{"first", "second"} {
		if err := os.WriteFile(file, []byte(subject), 0o600); err != nil {
			t.Fatal(err)
		}
		got := token(t, c)
		if got != "for-"+subject {
			t.Errorf("token %q, want for-%s", got, subject)
		}
		c.Invalidate(got)
	}
	if _, err := c.Project(t.Context()); classify.Of(err) == nil || classify.Of(err).Class != classify.Config {
		t.Errorf("project of an external account: %v, want a config error", err)
	}
	_ = os.Remove(file)
	if _, err := c.Token(t.Context()); err == nil || classify.Of(err).Class != classify.Transient || classify.Of(err).Code != "no_credentials" {
		t.Errorf("without its file: %v, want transient no_credentials", err)
	}
}

// Every refusal says what it means for the messages that wait for the token.
func TestIssuersVerdicts(t *testing.T) {
	tests := []struct {
		name   string
		status int
		body   string
		err    error
		want   string
	}{
		{"invalid_grant", 400, `{"error":"invalid_grant","error_description":"Invalid JWT Signature."}`, nil, "config: pubsub 400 invalid_grant: the issuer refused the credential"},
		{"invalid_client", 401, `{"error":"invalid_client"}`, nil, "config: pubsub 401 invalid_client"},
		{"trouble of the issuer", 400, `{"error":"temporarily_unavailable"}`, nil, "transient: pubsub 400 no_credentials"},
		{"google document", 403, `{"error":{"code":403,"status":"PERMISSION_DENIED","message":"no"}}`, nil, "config: pubsub 403 PERMISSION_DENIED"},
		{"500", 500, `oops`, nil, "transient: pubsub 500 no_credentials"},
		{"503", 503, ``, nil, "throttled: pubsub 503 no_credentials"},
		{"throttled", 429, `{"error":"rate_limit"}`, nil, "throttled: pubsub 429 no_credentials"},
		{"a proxy's 403", 403, `<html>`, nil, "transient: pubsub 403 no_credentials"},
		{"a redirect", 302, ``, nil, "transient: pubsub 302 no_credentials"},
		{"200 HTML", 200, `<html>`, nil, "transient: pubsub no_credentials"},
		{"200 without a token", 200, `{}`, nil, "transient: pubsub no_credentials"},
		{"a token with a line break", 200, `{"access_token":"a\nb","expires_in":9}`, nil, "transient: pubsub no_credentials"},
		{"refused connection", 0, ``, errors.New("connection refused"), "transient: pubsub no_credentials: credentials_json, token request to oauth2.example: connection refused"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCredentials(t, CredentialOptions{JSON: serviceAccount("acme", issuerURI)}, func(*http.Request) (*http.Response, error) {
				if tt.err != nil {
					return nil, tt.err
				}
				return answer(tt.status, tt.body), nil
			})
			_, err := c.Token(t.Context())
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got %v\nwant %s…", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "PRIVATE KEY") {
				t.Errorf("a key in %q", err)
			}
		})
	}
}

// invalid_grant is config, and replacing the key heals it without a restart.
func TestReplacedKeyFileHeals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key.json")
	write := func(project string) {
		if err := os.WriteFile(path, []byte(serviceAccount(project, issuerURI+"/"+project)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := newCredentials(t, CredentialOptions{Getenv: env("GOOGLE_APPLICATION_CREDENTIALS", path)}, func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/revoked") {
			return answer(400, `{"error":"invalid_grant"}`), nil
		}
		return answer(200, `{"access_token":"good","expires_in":3600}`), nil
	})
	if _, err := c.Token(t.Context()); classify.Of(err) == nil || classify.Of(err).Code != "no_credentials" || !strings.Contains(err.Error(), path) {
		t.Errorf("missing file: %v, want no_credentials naming it", err)
	}
	write("revoked")
	if _, err := c.Token(t.Context()); classify.Of(err) == nil || classify.Of(err).Class != classify.Config {
		t.Errorf("revoked key: %v, want config", err)
	}
	write("new")
	if got := token(t, c); got != "good" {
		t.Errorf("token %q, want good", got)
	}
}

func TestGcloudsFileIsFound(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, ".config", "gcloud")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "application_default_credentials.json")
	if err := os.WriteFile(path, []byte(`{"type":"authorized_user","client_id":"i","client_secret":"s","refresh_token":"r"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newCredentials(t, CredentialOptions{Getenv: env("HOME", home)}, func(r *http.Request) (*http.Response, error) {
		if r.URL.Host != "oauth2.googleapis.com" {
			t.Errorf("request to %s", r.URL)
		}
		return answer(200, `{"access_token":"mine","expires_in":3600}`), nil
	})
	if got := token(t, c); got != "mine" || c.Source() != path {
		t.Errorf("token %q from %s, want mine from %s", got, c.Source(), path)
	}
}

func TestMetadataServer(t *testing.T) {
	var paths []string
	c := newCredentials(t, CredentialOptions{}, func(r *http.Request) (*http.Response, error) {
		paths = append(paths, r.URL.String())
		if r.Header.Get("Metadata-Flavor") != "Google" {
			t.Error("no Metadata-Flavor header")
		}
		if strings.HasSuffix(r.URL.Path, "/project-id") {
			return answer(200, "acme-prod\n"), nil
		}
		return answer(200, `{"access_token":"vm","expires_in":3599,"token_type":"Bearer"}`), nil
	})
	if got := token(t, c); got != "vm" {
		t.Errorf("token %q", got)
	}
	for range 2 { // the second from memory
		if p, err := c.Project(t.Context()); p != "acme-prod" || err != nil {
			t.Errorf("project %q, %v", p, err)
		}
	}
	want := []string{
		"http://169.254.169.254/computeMetadata/v1/instance/service-accounts/default/token?scopes=https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fpubsub",
		"http://169.254.169.254/computeMetadata/v1/project/project-id",
	}
	if fmt.Sprint(paths) != fmt.Sprint(want) {
		t.Errorf("asked %v, want %v", paths, want)
	}
}

// One hiccup is not remembered: two 500s, then it works.
func TestMetadataHiccupIsTransientAndForgotten(t *testing.T) {
	n := 0
	c := newCredentials(t, CredentialOptions{}, func(*http.Request) (*http.Response, error) {
		if n++; n <= 2 {
			return answer(500, "internal"), nil
		}
		return answer(200, `{"access_token":"vm","expires_in":3599}`), nil
	})
	for range 2 {
		_, err := c.Token(t.Context())
		if e := classify.Of(err); e == nil || e.Class != classify.Transient || e.Code != "no_credentials" || e.Status != 500 {
			t.Errorf("got %v, want transient no_credentials with 500", err)
		}
	}
	if got := token(t, c); got != "vm" {
		t.Errorf("token %q", got)
	}
}

func TestMetadataVerdicts(t *testing.T) {
	tests := []struct {
		name, want string
		response   *http.Response
	}{
		{"no account attached", "transient: pubsub 404 no_credentials: none found", answer(404, "not found")},
		{"may not impersonate", "config: pubsub 403 PERMISSION_DENIED", answer(403, "Unable to generate access token")},
		{"a captive portal's 403", "transient: pubsub 403 no_credentials", &http.Response{StatusCode: 403, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("<html>"))}},
		{"503", "transient: pubsub 503 no_credentials", answer(503, "")},
		{"429", "throttled: pubsub 429 no_credentials", answer(429, "")},
		{"200 HTML", "transient: pubsub no_credentials", answer(200, "<html>")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCredentials(t, CredentialOptions{}, func(*http.Request) (*http.Response, error) { return tt.response, nil })
			if _, err := c.Token(t.Context()); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got %v, want %s…", err, tt.want)
			}
		})
	}
}

// A metadata server that takes the connection and stays mute costs the time-out, and the error names
// every source that was tried.
func TestMuteMetadataServerIsGivenUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	home := t.TempDir()
	c := newCredentials(t, CredentialOptions{
		LookupTimeout: 50 * time.Millisecond,
		Getenv:        env("HOME", home, "GCE_METADATA_HOST", l.Addr().String()),
	}, nil)
	_, err = c.Token(t.Context())
	e := classify.Of(err)
	if e == nil || e.Class != classify.Transient || e.Code != "no_credentials" {
		t.Fatalf("got %v, want transient no_credentials", err)
	}
	for _, part := range []string{"credentials_json", "GOOGLE_APPLICATION_CREDENTIALS", home, "metadata server at " + l.Addr().String(), "no answer within 50ms"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q doesn't name %q", err, part)
		}
	}
}

func TestMetadataServerIsNotAskedWhenForbidden(t *testing.T) {
	c := newCredentials(t, CredentialOptions{Getenv: env("NO_GCE_CHECK", "true")}, func(*http.Request) (*http.Response, error) {
		t.Error("asked")
		return nil, errors.New("asked")
	})
	if _, err := c.Token(t.Context()); err == nil || !strings.Contains(err.Error(), "NO_GCE_CHECK") {
		t.Errorf("got %v", err)
	}
}

func TestCredentialsJSONIsCheckedAtStart(t *testing.T) {
	tests := []struct{ name, json, text string }{
		{"no JSON", `{"type":`, "credentials_json: is no JSON object"},
		{"a path", `/etc/key.json`, "credentials_json: is no JSON object"},
		{"no type", `{}`, `has no "type"`},
		{"unknown type", `{"type":"gdch_service_account"}`, "not supported"},
		{"an OAuth client", `{"type":"authorized_user","installed":{"client_id":"x"}}`, "needs a person"},
		{"no key", `{"type":"service_account"}`, "private_key is missing"},
		{"half a key", `{"type":"service_account","private_key":"-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"}`, "no PEM private key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewCredentials(CredentialOptions{JSON: tt.json})
			if e := classify.Of(err); e == nil || e.Class != classify.Config || !strings.Contains(err.Error(), tt.text) || strings.Contains(err.Error(), "c2VjcmV0") {
				t.Errorf("got %v, want config … %s", err, tt.text)
			}
		})
	}
}

// A signed assertion is worth a token, so it does not go over plain http either.
func TestIssuerOverPlainHTTPIsRefused(t *testing.T) {
	c := newCredentials(t, CredentialOptions{JSON: serviceAccount("acme", "http://oauth2.example/token")}, func(r *http.Request) (*http.Response, error) {
		t.Errorf("request to %s", r.URL)
		return nil, errors.New("sent")
	})
	if _, err := c.Token(t.Context()); classify.Of(err) == nil || classify.Of(err).Class != classify.Config || !strings.Contains(err.Error(), "must be https") {
		t.Errorf("got %v, want a config error", err)
	}
}

// All that wait share one look-up, and one of them leaving doesn't end it for the others.
func TestOneLookupServesAllWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		c := newCredentials(t, CredentialOptions{}, func(r *http.Request) (*http.Response, error) {
			asked.Add(1)
			select {
			case <-time.After(time.Second):
				return answer(200, `{"access_token":"vm","expires_in":3600}`), nil
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		})
		impatient, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := c.Token(impatient)
			if !errors.Is(err, context.DeadlineExceeded) || classify.Of(err).Class != classify.Transient {
				t.Errorf("impatient: %v", err)
			}
		})
		for range 32 {
			wg.Go(func() {
				if tok, err := c.Token(t.Context()); tok != "vm" || err != nil {
					t.Errorf("waiter: %q, %v", tok, err)
				}
			})
		}
		wg.Wait()
		if n := asked.Load(); n != 1 {
			t.Errorf("%d look-ups, want 1", n)
		}
		// 32 requests in flight meet a 401 with the same token: one look-up again.
		for range 32 {
			c.Invalidate("vm")
		}
		for range 32 {
			wg.Go(func() { _, _ = c.Token(t.Context()) })
		}
		wg.Wait()
		if n := asked.Load(); n != 2 {
			t.Errorf("%d look-ups after the 401s, want 2", n)
		}
	})
}

// A token that is not the current one says nothing about the current one.
func TestInvalidateOfAnOldTokenIsIgnored(t *testing.T) {
	n := 0
	c := newCredentials(t, CredentialOptions{}, func(*http.Request) (*http.Response, error) {
		n++
		return answer(200, fmt.Sprintf(`{"access_token":"t%d","expires_in":3600}`, n)), nil
	})
	c.Invalidate(token(t, c))
	if got := token(t, c); got != "t2" {
		t.Errorf("token %q, want t2", got)
	}
	c.Invalidate("t1")
	if got := token(t, c); got != "t2" || n != 2 {
		t.Errorf("token %q after %d look-ups, want t2 after 2", got, n)
	}
}

// Ahead of its end a token is renewed behind the back of those who use it; when that fails it serves on,
// to its end.
func TestTokenIsRenewedAheadAndOutlivesAFailedRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var warned []error
		n, broken := 0, false
		c := newCredentials(t, CredentialOptions{Warn: func(err error) { warned = append(warned, err) }}, func(*http.Request) (*http.Response, error) {
			if n++; broken {
				return answer(500, "oops"), nil
			}
			return answer(200, fmt.Sprintf(`{"access_token":"t%d","expires_in":3600}`, n)), nil
		})
		if got := token(t, c); got != "t1" {
			t.Fatalf("token %q", got)
		}
		time.Sleep(3600*time.Second - renewAhead - time.Second)
		if token(t, c); n != 1 {
			t.Errorf("%d look-ups before it is time, want 1", n)
		}
		time.Sleep(time.Second)
		if got := token(t, c); got != "t1" {
			t.Errorf("token %q while it is being renewed, want t1", got)
		}
		synctest.Wait()
		if got := token(t, c); got != "t2" || n != 2 {
			t.Errorf("token %q after %d look-ups, want t2 after 2", got, n)
		}

		broken = true
		time.Sleep(3600*time.Second - renewAhead)
		for range 5 { // one attempt in ten seconds, however often it is asked
			for range 10 {
				if got := token(t, c); got != "t2" {
					t.Errorf("token %q while renewal fails, want t2", got)
				}
				synctest.Wait()
			}
			time.Sleep(renewPause)
		}
		if n != 2+5 || len(warned) != 5 {
			t.Errorf("%d attempts, %d warnings, want 5 each", n-2, len(warned))
		}
		time.Sleep(renewAhead)
		if _, err := c.Token(t.Context()); classify.Of(err) == nil || classify.Of(err).Class != classify.Transient {
			t.Errorf("past its end: %v, want transient", err)
		}
		broken = false
		if got := token(t, c); got != fmt.Sprintf("t%d", n) {
			t.Errorf("token %q once it works again", got)
		}
	})
}

// expires_in 1, or 0, is tried and fetched again soon, and not once per request.
func TestShortLivedTokensAreNotLoopedOn(t *testing.T) {
	for _, expires := range []int{1, 0, -5} {
		t.Run(fmt.Sprint(expires), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				c := newCredentials(t, CredentialOptions{}, func(*http.Request) (*http.Response, error) {
					n++
					return answer(200, fmt.Sprintf(`{"access_token":"t%d","expires_in":%d}`, n, expires)), nil
				})
				for range 100 {
					token(t, c)
				}
				if n != 1 {
					t.Errorf("%d look-ups for 100 requests, want 1", n)
				}
				time.Sleep(time.Second)
				if got := token(t, c); got != "t2" {
					t.Errorf("token %q a second later, want t2", got)
				}
			})
		})
	}
}

func TestCloseEndsALookup(t *testing.T) {
	for name, credential := range map[string]string{
		"metadata server": "",
		// The library's own exchange for keys knows no context.
		"key": serviceAccount("", issuerURI),
	} {
		t.Run(name, func(t *testing.T) { testCloseEndsALookup(t, credential) })
	}
}

func testCloseEndsALookup(t *testing.T, credential string) {
	synctest.Test(t, func(t *testing.T) {
		c := newCredentials(t, CredentialOptions{JSON: credential}, func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.Token(t.Context()); err == nil || classify.Of(err).Class != classify.Transient {
				t.Errorf("Token during Close: %v, want transient", err)
			}
		})
		wg.Go(func() { _, _ = c.Project(t.Context()) })
		synctest.Wait()
		start := time.Now()
		c.Close()
		wg.Wait()
		if took := time.Since(start); took != 0 {
			t.Errorf("Close took %v", took)
		}
		if _, err := c.Token(t.Context()); err == nil {
			t.Error("a token after Close")
		}
		c.Close()
	})
}

// A real round trip, transports included.
func TestKeyFileAgainstALoopbackIssuer(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"access_token":"real","expires_in":3600,"token_type":"Bearer"}`)
	}))
	defer s.Close()
	c := newCredentials(t, CredentialOptions{JSON: serviceAccount("acme", s.URL)}, nil)
	if got := token(t, c); got != "real" {
		t.Errorf("token %q", got)
	}
}
