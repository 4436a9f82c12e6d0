package sqs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/wire"
	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/credentials/processcreds"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

const (
	// lookupTimeout bounds one look-up of credentials, all its requests together.
	lookupTimeout = 10 * time.Second
	// issuerTimeout bounds one request to STS or to a container's credential service.
	issuerTimeout = 5 * time.Second
	// metadataTimeout bounds one request to the instance metadata service, which answers within
	// milliseconds where it answers. From a container behind too small a hop limit it stays mute; a
	// look-up makes two such requests before it gives up.
	metadataTimeout = 1500 * time.Millisecond
	roleSessionName = "ankusa-connect"
)

// CredentialOptions choose where credentials come from. Empty ones mean the default chain: environment,
// shared config files, web identity (IRSA), container (ECS, EKS), EC2 instance metadata.
type CredentialOptions struct {
	// ID, Secret and Token are static credentials. ID and Secret go together.
	ID, Secret, Token string
	// Profile is one of the shared config files.
	Profile string
	// FromEC2Role asks the instance metadata service and nobody else.
	FromEC2Role bool
	// Role is assumed, with RoleExternalID if set, by the credentials found.
	Role, RoleExternalID string
	// Region is whose STS is asked. Empty takes it from environment and shared config.
	Region string
	// Now is the local clock; nil means time.Now.
	Now func() time.Time
}

// LoadCredentials returns the credentials that o describes. Nothing is read or dialled until the first
// Retrieve; a failure here is of o itself, and names the field.
func LoadCredentials(o CredentialOptions) (*CachedCredentials, error) {
	for _, f := range [...]struct {
		name  string
		value *string
	}{{"credentials.id", &o.ID}, {"credentials.secret", &o.Secret}, {"credentials.token", &o.Token}} {
		v, err := trimKey(f.name, *f.value)
		if err != nil {
			return nil, err
		}
		*f.value = v
	}
	o.Profile, o.Role, o.Region = strings.TrimSpace(o.Profile), strings.TrimSpace(o.Role), strings.TrimSpace(o.Region)
	static := o.ID != ""
	switch {
	case static != (o.Secret != ""):
		return nil, classify.Configf(service, "invalid_credentials", "credentials.id and credentials.secret go together: one of them is empty")
	case o.Token != "" && !static:
		return nil, classify.Configf(service, "invalid_credentials", "credentials.token is set without credentials.id and credentials.secret")
	case o.RoleExternalID != "" && o.Role == "":
		return nil, classify.Configf(service, "invalid_credentials", "credentials.role_external_id is set without credentials.role")
	case boolCount(static, o.Profile != "", o.FromEC2Role) > 1:
		return nil, classify.Configf(service, "invalid_credentials", "credentials.id, credentials.profile and credentials.from_ec2_role exclude each other")
	case o.Region != "" && !validRegion(o.Region):
		return nil, classify.Configf(service, "invalid_credentials", "%q is no region", clip(o.Region))
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	var stamp func() string
	if !static && !o.FromEC2Role {
		stamp = sharedFilesStamp
	}
	return newCached(o.look, stamp, lookupTimeout, o.Now), nil
}

func boolCount(bs ...bool) int {
	n := 0
	for _, b := range bs {
		if b {
			n++
		}
	}
	return n
}

// look finds the credentials anew. The SDK's configuration is loaded each time, because it reads the
// environment and the shared files only then, and what it makes of them latches.
func (o CredentialOptions) look(ctx context.Context) (aws.Credentials, error) {
	if o.ID != "" && o.Role == "" {
		return aws.Credentials{AccessKeyID: o.ID, SecretAccessKey: o.Secret, SessionToken: o.Token, Source: "configuration"}, nil
	}
	provider, err := o.provider(ctx)
	if err != nil {
		return aws.Credentials{}, o.explain(err)
	}
	creds, err := provider.Retrieve(ctx)
	if err != nil {
		return aws.Credentials{}, o.explain(err)
	}
	return creds, nil
}

func (o CredentialOptions) provider(ctx context.Context) (aws.CredentialsProvider, error) {
	metadata, err := metadataClient()
	if err != nil {
		return nil, err
	}
	load := []func(*config.LoadOptions) error{
		config.WithHTTPClient(issuerHTTP()),
		config.WithEC2RoleCredentialOptions(func(r *ec2rolecreds.Options) { r.Client = metadata }),
		// The batcher retries, with a class to go by; a look-up is one try at each source.
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
	}
	if o.Region != "" {
		load = append(load, config.WithRegion(o.Region))
	}
	switch {
	case o.ID != "":
		load = append(load, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(o.ID, o.Secret, o.Token)))
	case o.Profile != "":
		load = append(load, config.WithSharedConfigProfile(o.Profile))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, err
	}
	if o.FromEC2Role {
		cfg.Credentials = ec2rolecreds.New(func(r *ec2rolecreds.Options) { r.Client = metadata })
	}
	if o.Role == "" {
		return cfg.Credentials, nil
	}
	return stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), o.Role, func(r *stscreds.AssumeRoleOptions) {
		r.RoleSessionName = roleSessionName
		if o.RoleExternalID != "" {
			r.ExternalID = aws.String(o.RoleExternalID)
		}
	}), nil
}

// explain classifies a failed look-up. An issuer that answered has said what is wrong; everything else
// is a source that wasn't there.
func (o CredentialOptions) explain(err error) error {
	text := excerpt(err)
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		status := 0
		if r, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
			status = r.HTTPStatusCode()
		}
		e := classify.SQS(status, cleanCode(api.ErrorCode()), cleanMessage(api.ErrorMessage()))
		e.Service, e.Err = "sts", err
		switch {
		case e.Class == classify.Throttled:
		case classify.IsSQSCode(e.Code, "IDPCommunicationError"), // the issuer couldn't reach the identity provider
			classify.IsSQSCode(e.Code, "RequestExpired"), classify.IsSQSCode(e.Code, "RequestTimeTooSkewed"):
			e.Class = classify.Transient
		case status >= 400 && status < 500:
			e.Class = classify.Config
		case e.Class == classify.Permanent: // no message is to blame for a look-up
			e.Class = classify.Config
		}
		e.Message = "the credentials' issuer refused: " + cmp.Or(e.Message, text)
		if e.Class == classify.Transient {
			e.Message = "the credentials' issuer failed: " + cmp.Or(cleanMessage(api.ErrorMessage()), text)
		}
		if strings.HasSuffix(fmt.Sprintf("%T", api), "client.EndpointError") { // an internal type of the SDK's
			// All that a container's endpoint ever says is secrets, and the SDK takes a body that it can't
			// read for a message.
			e.Service, e.Err = service, nil
			e.Message = "the container's credential endpoint refused or failed"
		}
		return e
	}
	return &classify.Error{Class: classify.Transient, Service: service, Code: CodeNoCredentials, Err: withoutOutput(err),
		Message: fmt.Sprintf("no credentials found or none reachable; tried %s. Last: %s", o.sources(), text)}
}

// excerpt is the start of a failed look-up's text. A credential process that prints something else than
// credentials has probably printed secrets, and the SDK quotes them.
func excerpt(err error) string {
	if isProcess(err) {
		return "credential_process printed no credentials document, or failed"
	}
	return wire.Excerpt([]byte(err.Error()))
}

// withoutOutput is err where it may be kept as a cause, else nil.
func withoutOutput(err error) error {
	if isProcess(err) {
		return nil
	}
	return err
}

func isProcess(err error) bool {
	_, ok := errors.AsType[*processcreds.ProviderError](err)
	return ok
}

// sources names what a look-up tries, for whoever has to find out why none had any.
func (o CredentialOptions) sources() string {
	const metadata = "EC2 instance metadata (IMDSv2; in a container its hop limit has to be 2 or more; off when AWS_EC2_METADATA_DISABLED is true)"
	var s string
	switch {
	case o.ID != "":
		s = "credentials.id"
	case o.FromEC2Role:
		s = metadata
	case o.Profile != "":
		s = "profile " + clip(o.Profile) + " of the shared config files and what it refers to"
	default:
		s = "environment (AWS_ACCESS_KEY_ID), web identity (AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN), shared config files (AWS_PROFILE), container (AWS_CONTAINER_CREDENTIALS_…), " + metadata
	}
	if o.Role != "" {
		s += ", then STS for credentials.role"
	}
	return s
}

// sharedFilesStamp changes when one of the shared config files does.
func sharedFilesStamp() string {
	home, _ := os.UserHomeDir()
	var b strings.Builder
	for _, f := range [...]struct{ env, name string }{{"AWS_SHARED_CREDENTIALS_FILE", "credentials"}, {"AWS_CONFIG_FILE", "config"}} {
		path := cmp.Or(os.Getenv(f.env), filepath.Join(home, ".aws", f.name))
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintf(&b, "%s %d %d;", path, info.ModTime().UnixNano(), info.Size())
		}
	}
	return b.String()
}

// issuerHTTP returns a client of its own for one look-up. Look-ups are far between, so connections
// aren't kept, and nothing of it outlives the look-up. It has the SDK's own type, because the SDK adds
// the certificates of AWS_CA_BUNDLE to no other.
func issuerHTTP() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTimeout(issuerTimeout).WithTransportOptions(func(t *http.Transport) {
		t.Proxy = proxyOutside
		t.DialContext = (&net.Dialer{Timeout: issuerTimeout}).DialContext
		t.TLSHandshakeTimeout = issuerTimeout
		t.DisableKeepAlives = true
		t.MaxResponseHeaderBytes = 64 << 10
	})
}

// metadataClient asks the instance metadata service, whose silence must be short: from a container
// behind too small a hop limit it is all there is to hear. The environment may move it or turn it off.
func metadataClient() (*imds.Client, error) {
	env, err := config.NewEnvConfig()
	if err != nil {
		return nil, err
	}
	return imds.NewFromConfig(aws.Config{
		ConfigSources: []any{env},
		HTTPClient:    issuerHTTP().WithTimeout(metadataTimeout),
		Retryer:       func() aws.Retryer { return aws.NopRetryer{} },
	}), nil
}

// environmentProxy is replaced by tests: the original reads the environment once in a process's life.
var environmentProxy = http.ProxyFromEnvironment

// proxyOutside is the environment's proxy, except for link-local addresses: a metadata service behind a
// proxy would be the proxy's own.
func proxyOutside(r *http.Request) (*url.URL, error) {
	if addr, err := netip.ParseAddr(r.URL.Hostname()); err == nil {
		if addr.IsLinkLocalUnicast() || addr == netip.MustParseAddr("fd00:ec2::254") || addr == netip.MustParseAddr("fd00:ec2::23") {
			return nil, nil
		}
	}
	u, err := environmentProxy(r)
	if err != nil {
		return nil, errors.New("the proxy named by the environment is no valid proxy URL") // the original quotes it
	}
	return u, nil
}
