package pubsub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

const (
	// metadataIP is asked rather than metadata.google.internal, so that a look-up does not depend on
	// name resolution; https://cloud.google.com/compute/docs/metadata/querying-metadata.
	metadataIP       = "169.254.169.254"
	metadataVariable = "GCE_METADATA_HOST"
	metadataFlavor   = "Metadata-Flavor"
)

// metadataToken asks the metadata server for the token of the attached service account. It is simply
// asked, each time: a test whether there is one, remembered, would turn one hiccup at start into a
// credential that is missing until the next start.
func (c *Credentials) metadataToken(ctx context.Context, tried string) (grant, error) {
	body, err := c.metadata(ctx, tried, "instance/service-accounts/default/token?scopes="+url.QueryEscape(strings.Join(c.scopes, ",")))
	if err != nil {
		return grant{}, err
	}
	var answer struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.AccessToken == "" {
		return grant{}, c.noCredentials("%s: the answer is no token", c.metadataName())
	}
	return grant{
		token:  answer.AccessToken,
		expiry: time.Now().Add(time.Duration(min(max(answer.ExpiresIn, 0), 1<<31)) * time.Second),
		source: c.metadataName(),
	}, nil
}

func (c *Credentials) metadataProject(ctx context.Context, tried string) (string, error) {
	body, err := c.metadata(ctx, tried, "project/project-id")
	if err != nil {
		return "", err
	}
	project := strings.TrimSpace(string(body))
	if CheckProject(project) != nil {
		return "", c.noCredentials("%s: the answer is no project id: %s", c.metadataName(), wire.Excerpt(body))
	}
	return project, nil
}

func (c *Credentials) metadataHost() string { return cmp.Or(c.getenv(metadataVariable), metadataIP) }
func (c *Credentials) metadataName() string { return "metadata server at " + c.metadataHost() }

// metadata gets one value. The error names every source that was looked at, this one last.
func (c *Credentials) metadata(ctx context.Context, tried, path string) ([]byte, error) {
	who := tried + ", " + c.metadataName()
	if on := c.getenv("NO_GCE_CHECK"); strings.EqualFold(on, "true") || on == "1" {
		return nil, c.noCredentials("none found: %s is not asked (NO_GCE_CHECK is set)", who)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.metadataHost()+"/computeMetadata/v1/"+path, nil)
	if err != nil {
		return nil, classify.Configf(c.service, "invalid_credentials", "%s is no host or host:port", metadataVariable)
	}
	r.Header.Set(metadataFlavor, "Google")
	r.Header.Set("User-Agent", userAgent)
	resp, err := c.local.RoundTrip(r)
	if err == nil {
		defer resp.Body.Close()
		var body []byte
		if body, err = io.ReadAll(io.LimitReader(resp.Body, 64<<10)); err == nil {
			if resp.StatusCode == http.StatusOK {
				return body, nil
			}
			return nil, c.judgeMetadata(who, &refusal{resp.StatusCode, resp.Header, body})
		}
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("no answer within %v: %w", c.timeout, context.Cause(ctx))
	}
	return nil, c.noCredentials("none found: %s: %w (on Google Cloud it takes a service account attached to the machine or workload; elsewhere set credentials_json or %s)", who, withoutURL(err), keyFileVariable)
}

// judgeMetadata tells a service account that is refused from a server that has none, has trouble, or is
// something else altogether.
func (c *Credentials) judgeMetadata(who string, r *refusal) *classify.Error {
	genuine := r.header.Get(metadataFlavor) == "Google"
	e := &classify.Error{
		Service: c.service, Status: r.status, Code: codeNoCredentials,
		Message:    fmt.Sprintf("%s: %s", who, wire.Excerpt(r.body)),
		RetryAfter: classify.ParseRetryAfter(r.header, time.Now()),
	}
	switch {
	case r.status == http.StatusTooManyRequests:
		e.Class = classify.Throttled
	case genuine && (r.status == http.StatusForbidden || r.status == http.StatusUnauthorized):
		// GKE answers so when the Kubernetes service account may not act as the Google one.
		e.Class, e.Code = classify.Config, "PERMISSION_DENIED"
		e.Message = "the metadata server may not issue a token for the attached service account; check roles/iam.workloadIdentityUser: " + e.Message
	case genuine && r.status == http.StatusNotFound:
		e.Message = "none found: no service account is attached to this machine or workload: " + e.Message
	}
	return e
}

func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
