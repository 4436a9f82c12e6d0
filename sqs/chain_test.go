package sqs_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/sqs"
)

// cleanEnv hides whatever credentials the machine has.
func cleanEnv(t *testing.T) string {
	t.Helper()
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "AWS_") {
			os.Unsetenv(name)
			t.Cleanup(func() { os.Setenv(name, value) })
		}
	}
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "credentials"))
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(dir, "config"))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	return dir
}

func load(t *testing.T, o sqs.CredentialOptions) *sqs.CachedCredentials {
	t.Helper()
	c, err := sqs.LoadCredentials(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func wantCreds(t *testing.T, c *sqs.CachedCredentials, id, secret, token string) {
	t.Helper()
	got, err := c.Retrieve(t.Context())
	if err != nil || got.AccessKeyID != id || got.SecretAccessKey != secret || got.SessionToken != token {
		t.Fatalf("Retrieve = %s/%s/%s, %v; want %s/%s/%s", got.AccessKeyID, got.SecretAccessKey, got.SessionToken, err, id, secret, token)
	}
}

func TestCredentialOptionsAreCheckedByName(t *testing.T) {
	for _, tc := range []struct {
		name string
		o    sqs.CredentialOptions
		word string
	}{
		{"id alone", sqs.CredentialOptions{ID: "A"}, "credentials.secret"},
		{"secret alone", sqs.CredentialOptions{Secret: "hush"}, "credentials.id"},
		{"token alone", sqs.CredentialOptions{Token: "hush"}, "credentials.token"},
		{"line break inside", sqs.CredentialOptions{ID: "A", Secret: "hush\nhush"}, "credentials.secret"},
		{"umlaut inside", sqs.CredentialOptions{ID: "Ä", Secret: "hush"}, "credentials.id"},
		{"two sources", sqs.CredentialOptions{ID: "A", Secret: "hush", Profile: "p"}, "credentials.profile"},
		{"external id alone", sqs.CredentialOptions{RoleExternalID: "x"}, "role_external_id"},
		{"region", sqs.CredentialOptions{Region: "evil.test/"}, "region"},
	} {
		_, err := sqs.LoadCredentials(tc.o)
		if e := classify.Of(err); e == nil || e.Class != classify.Config || !strings.Contains(e.Error(), tc.word) || strings.Contains(e.Error(), "hush") {
			t.Errorf("%s: error = %v, want a config one that names %s", tc.name, err, tc.word)
		}
	}
}

func TestStaticCredentialsAreTrimmed(t *testing.T) {
	cleanEnv(t)
	wantCreds(t, load(t, sqs.CredentialOptions{ID: " AKID\n", Secret: "a/b+c\r\n", Token: "t\n"}), "AKID", "a/b+c", "t")
}

func TestEnvironmentThenSharedFile(t *testing.T) {
	dir := cleanEnv(t)
	write(t, filepath.Join(dir, "credentials"), "[default]\naws_access_key_id=FILE\naws_secret_access_key=s\n[other]\naws_access_key_id=OTHER\naws_secret_access_key=o\n")
	wantCreds(t, load(t, sqs.CredentialOptions{}), "FILE", "s", "")
	wantCreds(t, load(t, sqs.CredentialOptions{Profile: "other"}), "OTHER", "o", "")
	t.Setenv("AWS_ACCESS_KEY_ID", "ENV\n")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "e")
	t.Setenv("AWS_SESSION_TOKEN", "tok")
	wantCreds(t, load(t, sqs.CredentialOptions{}), "ENV", "e", "tok")
	wantCreds(t, load(t, sqs.CredentialOptions{Profile: "other"}), "OTHER", "o", "")
}

// Nothing found heals without a restart, and so does a profile that wasn't there.
func TestCredentialsThatAppearLaterAreFound(t *testing.T) {
	dir := cleanEnv(t)
	for _, profile := range []string{"", "late"} {
		c := load(t, sqs.CredentialOptions{Profile: profile})
		_, err := c.Retrieve(t.Context())
		if e := classify.Of(err); e == nil || e.Class != classify.Transient || e.Code != sqs.CodeNoCredentials {
			t.Fatalf("error = %v, want transient no_credentials", err)
		}
		section := profile
		if section == "" {
			section = "default"
			for _, word := range []string{"AWS_ACCESS_KEY_ID", "shared config", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS", "IMDS", "hop limit"} {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("error = %v, want %s in it", err, word)
				}
			}
		}
		path := filepath.Join(dir, "credentials")
		write(t, path, "["+section+"]\naws_access_key_id=NEW\naws_secret_access_key=s\n")
		wantCreds(t, c, "NEW", "s", "")
		os.Remove(path)
	}
}

func TestReplacedFileIsReadAfterRefusal(t *testing.T) {
	path := filepath.Join(cleanEnv(t), "credentials")
	write(t, path, "[default]\naws_access_key_id=ONE\naws_secret_access_key=s\n")
	c := load(t, sqs.CredentialOptions{})
	wantCreds(t, c, "ONE", "s", "")
	write(t, path, "[default]\naws_access_key_id=TWO\naws_secret_access_key=s\n")
	old, _ := c.Retrieve(t.Context())
	c.Invalidate(old)
	wantCreds(t, c, "TWO", "s", "")
}

// stsServer answers by script and remembers the forms it was sent.
type stsServer struct {
	url    string
	mu     sync.Mutex
	forms  []map[string]string
	script func(n int) (status int, code string) // 0: credentials
	life   time.Duration
}

func newSTS(t *testing.T) *stsServer {
	s := &stsServer{life: time.Hour}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.ParseForm()
		form := map[string]string{"auth": r.Header.Get("Authorization")}
		for k := range r.PostForm {
			form[k] = r.PostForm.Get(k)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.forms = append(s.forms, form)
		n := len(s.forms)
		if s.script != nil {
			if status, code := s.script(n); status != 0 {
				w.WriteHeader(status)
				fmt.Fprintf(w, `<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>no</Message></Error><RequestId>r</RequestId></ErrorResponse>`, code)
				return
			}
		}
		a := form["Action"]
		fmt.Fprintf(w, `<%[1]sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><%[1]sResult><Credentials><AccessKeyId>STS%[2]d</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t%[2]d</SessionToken><Expiration>%[3]s</Expiration></Credentials></%[1]sResult></%[1]sResponse>`,
			a, n, time.Now().Add(s.life).UTC().Format(time.RFC3339))
	}))
	t.Cleanup(h.Close)
	s.url = h.URL
	return s
}

func (s *stsServer) form(i int) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.forms[i]
}

func irsa(t *testing.T, s *stsServer) (tokenFile string) {
	dir := cleanEnv(t)
	tokenFile = filepath.Join(dir, "token")
	write(t, tokenFile, "first")
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", tokenFile)
	t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/hooks")
	t.Setenv("AWS_ENDPOINT_URL_STS", s.url)
	return tokenFile
}

func TestWebIdentityReadsItsTokenFileForEachRefresh(t *testing.T) {
	s := newSTS(t)
	file := irsa(t, s)
	c := load(t, sqs.CredentialOptions{Region: "eu-west-1"})
	wantCreds(t, c, "STS1", "s", "t1")
	write(t, file, "second")
	old, _ := c.Retrieve(t.Context())
	c.Invalidate(old)
	wantCreds(t, c, "STS2", "s", "t2")
	if a, b := s.form(0)["WebIdentityToken"], s.form(1)["WebIdentityToken"]; a != "first" || b != "second" {
		t.Errorf("tokens %q and %q, want first and second", a, b)
	}
}

func TestIssuersAnswerIsClassified(t *testing.T) {
	for _, tc := range []struct {
		status int
		code   string
		want   classify.Class
	}{
		{400, "Throttling", classify.Throttled},
		{400, "ThrottlingException", classify.Throttled},
		{503, "ServiceUnavailable", classify.Throttled},
		{403, "AccessDenied", classify.Config},
		{400, "InvalidIdentityToken", classify.Config},
		{400, "ExpiredTokenException", classify.Config},
		{403, "IDPRejectedClaim", classify.Config},
		{400, "ValidationError", classify.Config},
		{400, "InvalidParameterValue", classify.Config},
		{400, "IDPCommunicationError", classify.Transient},
		{500, "InternalFailure", classify.Transient},
	} {
		t.Run(tc.code, func(t *testing.T) {
			s := newSTS(t)
			irsa(t, s)
			s.script = func(n int) (int, string) {
				if n == 1 {
					return tc.status, tc.code
				}
				return 0, ""
			}
			c := load(t, sqs.CredentialOptions{Region: "eu-west-1"})
			_, err := c.Retrieve(t.Context())
			e := classify.Of(err)
			if e == nil || e.Class != tc.want || e.Code != tc.code || e.Status != tc.status {
				t.Fatalf("error = %v, want a %v one", err, tc.want)
			}
			if n := len(s.forms); n != 1 {
				t.Errorf("calls = %d, want 1: nothing is retried behind our back", n)
			}
			wantCreds(t, c, "STS2", "s", "t2") // it heals
		})
	}
}

func TestRoleIsAssumedByWhatWasFound(t *testing.T) {
	s := newSTS(t)
	cleanEnv(t)
	t.Setenv("AWS_ENDPOINT_URL_STS", s.url)
	c := load(t, sqs.CredentialOptions{ID: "BASE", Secret: "x", Role: "arn:aws:iam::1:role/r", RoleExternalID: "ext", Region: "eu-west-1"})
	wantCreds(t, c, "STS1", "s", "t1")
	form := s.form(0)
	if form["Action"] != "AssumeRole" || form["RoleArn"] != "arn:aws:iam::1:role/r" || form["ExternalId"] != "ext" || form["RoleSessionName"] != "ankusa-connect" {
		t.Errorf("form = %v", form)
	}
	if !strings.Contains(form["auth"], "Credential=BASE/") || !strings.Contains(form["auth"], "/eu-west-1/sts/") {
		t.Errorf("signed as %q, want BASE's for the region's STS", form["auth"])
	}
}

// The regional host: the global one is far away and its tokens don't hold everywhere.
func TestSTSHostIsTheRegions(t *testing.T) {
	s := newSTS(t)
	irsa(t, s)
	os.Unsetenv("AWS_ENDPOINT_URL_STS")
	hosts := make(chan string, 8)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	proxy := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hosts <- r.Host
		w.WriteHeader(http.StatusBadGateway)
	})}
	done := make(chan struct{})
	go func() { proxy.Serve(l); close(done) }() // ends at Close
	t.Cleanup(func() { proxy.Close(); <-done })
	sqs.SetProxyForTest(t, "http://"+l.Addr().String())
	c := load(t, sqs.CredentialOptions{Region: "ap-southeast-2"})
	if _, err := c.Retrieve(t.Context()); classify.Of(err) == nil || classify.Of(err).Code != sqs.CodeNoCredentials {
		t.Errorf("error = %v, want no_credentials: nobody answered", err)
	}
	if got := <-hosts; got != "sts.ap-southeast-2.amazonaws.com:443" {
		t.Errorf("host = %q", got)
	}
}

func metadata(t *testing.T, h http.HandlerFunc) {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	os.Unsetenv("AWS_EC2_METADATA_DISABLED")
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", s.URL)
}

func TestMetadataServicePastExpiryIsUsed(t *testing.T) {
	cleanEnv(t)
	var calls int
	metadata(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/latest/api/token" && r.Method == http.MethodPut:
			w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "21600")
			w.Write([]byte("imds-token"))
		case r.Header.Get("X-Aws-Ec2-Metadata-Token") != "imds-token":
			w.WriteHeader(http.StatusUnauthorized)
		case strings.HasSuffix(r.URL.Path, "/security-credentials/"):
			w.Write([]byte("role"))
		default:
			calls++
			fmt.Fprintf(w, `{"Code":"Success","AccessKeyId":"EC2","SecretAccessKey":"s","Token":"t","Expiration":%q}`, time.Now().Add(-time.Hour).UTC().Format(time.RFC3339))
		}
	})
	for _, o := range []sqs.CredentialOptions{{}, {FromEC2Role: true}} {
		calls = 0
		c := load(t, o)
		for range 20 {
			wantCreds(t, c, "EC2", "s", "t")
		}
		if calls != 1 {
			t.Errorf("calls = %d, want 1: past-expiry credentials are not looped on", calls)
		}
	}
}

// The metadata service accepts the connection and stays mute, as behind a hop limit of 1.
func TestMuteMetadataServiceCostsSeconds(t *testing.T) {
	cleanEnv(t)
	release := make(chan struct{})
	defer close(release)
	metadata(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err := load(t, sqs.CredentialOptions{}).Retrieve(ctx)
	e := classify.Of(err)
	if e == nil || e.Class != classify.Transient || e.Code != sqs.CodeNoCredentials || ctx.Err() != nil {
		t.Fatalf("error = %v, want transient no_credentials within seconds", err)
	}
	if !strings.Contains(err.Error(), "hop limit") {
		t.Errorf("error = %v, want the hop limit in it", err)
	}
}

func TestMetadataServiceIsLeftAlone(t *testing.T) {
	cleanEnv(t)
	asked := false
	metadata(t, func(http.ResponseWriter, *http.Request) { asked = true })
	wantCreds(t, load(t, sqs.CredentialOptions{ID: "A", Secret: "s"}), "A", "s", "")
	t.Setenv("AWS_ACCESS_KEY_ID", "ENV")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "e")
	wantCreds(t, load(t, sqs.CredentialOptions{}), "ENV", "e", "")
	os.Unsetenv("AWS_ACCESS_KEY_ID")
	os.Unsetenv("AWS_SECRET_ACCESS_KEY")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	for _, o := range []sqs.CredentialOptions{{}, {FromEC2Role: true}} {
		if _, err := load(t, o).Retrieve(t.Context()); classify.Of(err) == nil || classify.Of(err).Code != sqs.CodeNoCredentials {
			t.Errorf("disabled: error = %v, want no_credentials", err)
		}
	}
	if asked {
		t.Error("the metadata service was asked")
	}
}

// A company's proxy signs with its own authority, and AWS_CA_BUNDLE is how AWS tools are told of it.
func TestIssuerIsTrustedByTheEnvironmentsBundle(t *testing.T) {
	s := newSTS(t)
	tlsServer := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, _ := url.Parse(s.url)
		httputil.NewSingleHostReverseProxy(u).ServeHTTP(w, r)
	}))
	t.Cleanup(tlsServer.Close)
	file := irsa(t, s)
	t.Setenv("AWS_ENDPOINT_URL_STS", tlsServer.URL)
	bundle := filepath.Join(filepath.Dir(file), "bundle.pem")
	write(t, bundle, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tlsServer.Certificate().Raw})))
	t.Setenv("AWS_CA_BUNDLE", bundle)
	wantCreds(t, load(t, sqs.CredentialOptions{Region: "eu-west-1"}), "STS1", "s", "t1")
}
