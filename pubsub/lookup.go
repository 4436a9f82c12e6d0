package pubsub

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

const (
	codeNoCredentials = "no_credentials"

	keyFileVariable = "GOOGLE_APPLICATION_CREDENTIALS"
	// maxKeyFileBytes bounds a credential file; real ones are a few KiB.
	maxKeyFileBytes = 1 << 20
)

// grant is the result of a look-up.
type grant struct {
	token   string
	expiry  time.Time // zero: never
	project string    // empty: not known
	source  string
}

// lookUpToken finds a credential and trades it for a token. Files are read anew each time, so one that
// has been replaced counts at the next look-up.
func (c *Credentials) lookUpToken(ctx context.Context) (grant, error) {
	data, source, tried, err := c.find()
	if err != nil {
		return grant{}, err
	}
	var g grant
	if data != nil {
		g, err = c.exchange(ctx, data, source)
	} else {
		g, err = c.metadataToken(ctx, tried)
	}
	if err != nil {
		return grant{}, err
	}
	if !isHeaderToken(g.token) {
		return grant{}, c.noCredentials("%s: the token that was issued is empty or cannot stand in a header", g.source)
	}
	return g, nil
}

// lookUpProject finds the credential's own project.
func (c *Credentials) lookUpProject(ctx context.Context) (string, error) {
	data, source, tried, err := c.find()
	if err != nil {
		return "", err
	}
	if data == nil {
		return c.metadataProject(ctx, tried)
	}
	f, err := parseCredential(data)
	if err != nil {
		return "", c.noCredentials("%s: %v", source, err)
	}
	if f.ProjectID == "" {
		return "", classify.Configf(c.service, "invalid_project", "no project: set project or GOOGLE_CLOUD_PROJECT (%s, of type %s, names none)", source, f.Type)
	}
	return f.ProjectID, nil
}

// find returns the credential JSON and where it was, or nil for the metadata server and what was looked
// at in vain. The order is that of Google's libraries,
// https://cloud.google.com/docs/authentication/application-default-credentials.
func (c *Credentials) find() (data []byte, source, tried string, err error) {
	if c.json != nil {
		return c.json, "credentials_json", "", nil
	}
	if path := c.getenv(keyFileVariable); path != "" {
		source = keyFileVariable + " " + path
		data, err = readKeyFile(path)
		if err != nil {
			// It was named, so nothing else will do. It may be mounted in a moment.
			return nil, "", "", c.noCredentials("%s: %v", source, err)
		}
		return data, source, "", nil
	}
	tried = "credentials_json and " + keyFileVariable + " are not set"
	path := wellKnownFile(c.getenv)
	if path == "" {
		return nil, "", tried + ", there is no home directory", nil
	}
	data, err = readKeyFile(path)
	if err != nil {
		return nil, "", tried + ", " + path + ": " + err.Error(), nil
	}
	return data, path, "", nil
}

// wellKnownFile is where gcloud leaves the application default credentials.
func wellKnownFile(getenv func(string) string) string {
	const name = "application_default_credentials.json"
	if runtime.GOOS == "windows" {
		if dir := getenv("APPDATA"); dir != "" {
			return filepath.Join(dir, "gcloud", name)
		}
		return ""
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, ".config", "gcloud", name)
	}
	return ""
}

// readKeyFile returns errors without the path, which the caller names.
func readKeyFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxKeyFileBytes) {
		return nil, errors.New("is no credential file")
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, e.Err
	}
	return data, err
}

// credentialFile is what we have to know of a credential before Google's library reads it.
type credentialFile struct {
	Type       string `json:"type"`
	ProjectID  string `json:"project_id"`
	PrivateKey string `json:"private_key"`
}

// parseCredential refuses what cannot work, with errors that quote nothing of data.
func parseCredential(data []byte) (credentialFile, error) {
	var f struct {
		credentialFile
		Web       json.RawMessage `json:"web"`
		Installed json.RawMessage `json:"installed"`
	}
	if json.Unmarshal(data, &f) != nil {
		return f.credentialFile, errors.New("is no JSON object of a credential")
	}
	if f.Web != nil || f.Installed != nil {
		return f.credentialFile, errors.New("is an OAuth client, which needs a person to log in; use a service account's key or workload identity federation")
	}
	switch google.CredentialsType(f.Type) {
	case google.ServiceAccount:
		if !isPrivateKey(f.PrivateKey) {
			return f.credentialFile, errors.New("private_key is missing or no PEM private key")
		}
	case google.AuthorizedUser, google.ExternalAccount, google.ExternalAccountAuthorizedUser, google.ImpersonatedServiceAccount:
	case "":
		return f.credentialFile, errors.New(`has no "type"`)
	default:
		return f.credentialFile, fmt.Errorf("type %q is not supported", shorten(f.Type))
	}
	return f.credentialFile, nil
}

func isPrivateKey(text string) bool {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return false
	}
	if _, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		return true
	}
	_, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	return err == nil
}

// exchange trades the credential for a token with the help of Google's library. A new source is made
// each time: the library's own would keep its first reading of a file for ever.
func (c *Credentials) exchange(ctx context.Context, data []byte, source string) (grant, error) {
	f, err := parseCredential(data)
	if err != nil {
		return grant{}, c.noCredentials("%s: %v", source, err)
	}
	scopes := c.scopes
	if google.CredentialsType(f.Type) == google.ImpersonatedServiceAccount {
		// The library gives the scopes to both steps, and the first is a call of the IAM API.
		scopes = []string{"https://www.googleapis.com/auth/cloud-platform"}
	}
	witness := &witness{ctx: ctx, next: c.issuer}
	client := &http.Client{
		Transport:     witness,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, client)
	creds, err := google.CredentialsFromJSONWithType(ctx, data, google.CredentialsType(f.Type), scopes...)
	if err != nil {
		return grant{}, c.noCredentials("%s: %s", source, "the credential is incomplete or malformed")
	}
	token, err := creds.TokenSource.Token()
	if err != nil {
		return grant{}, c.judgeIssuer(ctx, source, witness, err)
	}
	return grant{token: token.AccessToken, expiry: token.Expiry, project: f.ProjectID, source: source}, nil
}

// noCredentials is a look-up that failed without a verdict on the credential.
func (c *Credentials) noCredentials(format string, args ...any) *classify.Error {
	return classify.Transientf(c.service, codeNoCredentials, format, args...)
}

// isHeaderToken accepts RFC 6750's alphabet and some more: visible ASCII.
func isHeaderToken(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) < 0
}
