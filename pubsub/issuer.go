package pubsub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

// witness sees the requests by which Google's library gets a token. The library reports failures in
// four different ways, most of them as text that quotes the whole answer; what the witness saw says the
// same in one way and quotes nothing.
type witness struct {
	ctx  context.Context // the look-up's; one of the library's clients uses none
	next http.RoundTripper

	// Of the last request:
	host    string
	err     error
	refusal *refusal // nil when it was answered with a 2xx
}

// refusal is an issuer's answer other than 2xx.
type refusal struct {
	status int
	header http.Header
	body   []byte // its start
}

// errPlainIssuer keeps a signed assertion, which is as good as a token, off the network in the clear.
var errPlainIssuer = errors.New("the credential names an issuer that is plain http; it must be https")

func (w *witness) RoundTrip(r *http.Request) (*http.Response, error) {
	w.host, w.err, w.refusal = r.URL.Host, nil, nil
	if r.URL.Scheme != "https" && r.Method == http.MethodPost && !isLoopback(r.URL.Hostname()) {
		w.err = errPlainIssuer
		return nil, w.err
	}
	resp, err := w.next.RoundTrip(r.WithContext(w.ctx))
	if err != nil {
		w.err = err
		return nil, err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
		resp.Body.Close()
		if err != nil {
			w.err = err
			return nil, err
		}
		w.refusal = &refusal{status: resp.StatusCode, header: resp.Header, body: body}
		resp.Body = io.NopCloser(bytes.NewReader(body))
	}
	return resp, nil
}

// issuerCodes are the errors of RFC 6749 (section 5.2), RFC 8693 and Google's token endpoint that mean
// that the credential is refused. Others, such as temporarily_unavailable, mean nothing of the kind.
var issuerCodes = map[string]bool{
	"invalid_grant": true, "invalid_client": true, "unauthorized_client": true, "invalid_request": true,
	"invalid_scope": true, "invalid_target": true, "access_denied": true, "unsupported_grant_type": true,
	"deleted_client": true, "disabled_client": true, "org_internal": true, "admin_policy_enforced": true,
}

// judgeIssuer says why a token was not issued.
func (c *Credentials) judgeIssuer(ctx context.Context, source string, w *witness, err error) *classify.Error {
	switch {
	case w.refusal != nil:
		return c.judgeRefusal(fmt.Sprintf("%s, token request to %s", source, w.host), w.refusal)
	case errors.Is(w.err, errPlainIssuer):
		return classify.Configf(c.service, "invalid_credentials", "%s: %w", source, errPlainIssuer)
	case ctx.Err() != nil:
		e := c.noCredentials("%s, token request to %s: no answer within %v", source, w.host, c.timeout)
		e.Err = context.Cause(ctx)
		return e
	case w.err != nil:
		return c.noCredentials("%s, token request to %s: %w", source, w.host, w.err)
	case w.host != "":
		return c.noCredentials("%s, token request to %s: the answer is no token", source, w.host)
	default:
		// Nothing was asked: the subject token's file or command failed. The library's text names it.
		return c.noCredentials("%s: %s", source, clip(err.Error()))
	}
}

// judgeRefusal reads an OAuth error, {"error":"…","error_description":"…"}, or a Google error document.
func (c *Credentials) judgeRefusal(who string, r *refusal) *classify.Error {
	e := &classify.Error{
		Class: classify.OfStatus(r.status), Service: c.service, Status: r.status, Code: codeNoCredentials,
		RetryAfter: classify.ParseRetryAfter(r.header, time.Now()),
	}
	var oauth struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(r.body, &oauth) == nil && oauth.Error != "" {
		e.Message = fmt.Sprintf("%s: %s %s", who, clip(oauth.Error), clip(oauth.Description))
		if issuerCodes[oauth.Error] {
			e.Class, e.Code, e.RetryAfter = classify.Config, oauth.Error, 0
			e.Message = "the issuer refused the credential; check that the key is not revoked and that the clock is right: " + e.Message
		}
		return e
	}
	if doc, ok := parseError(r.body); ok {
		e.Message = fmt.Sprintf("%s: %s %s", who, doc.Status, clip(doc.Message))
		e.RetryAfter = max(e.RetryAfter, doc.RetryDelay)
		switch doc.Status {
		case "PERMISSION_DENIED", "UNAUTHENTICATED", "NOT_FOUND", "INVALID_ARGUMENT", "FAILED_PRECONDITION":
			e.Class, e.Code, e.RetryAfter = classify.Config, doc.Status, 0
			e.Message = "the issuer refused the credential; check the service account, its rights (roles/iam.serviceAccountTokenCreator, roles/iam.workloadIdentityUser) and the audience: " + e.Message
		}
		return e
	}
	e.Message = who + ": " + wire.Excerpt(r.body)
	return e
}
