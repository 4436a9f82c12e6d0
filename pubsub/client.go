package pubsub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

// TokenSource hands out access tokens. [Credentials] is one.
type TokenSource interface {
	// Token returns a token, from memory or after a look-up. ctx ends the wait, not the look-up. An
	// error is a *classify.Error.
	Token(ctx context.Context) (string, error)
	// Invalidate says that the service refused token. The source forgets it, unless it has a newer one
	// already.
	Invalidate(token string)
}

// ProjectSource knows a project that only the credential names. [Credentials] is one.
type ProjectSource interface {
	// Project returns the project id. An error is a *classify.Error.
	Project(ctx context.Context) (string, error)
}

// Observation is one HTTP request as it went.
type Observation struct {
	Entries int             // messages in it
	Bytes   int             // of its body
	Latency time.Duration   // until the reply had been read, or the failure was known
	Err     *classify.Error // nil when every message was stored
	Resent  bool            // refused with a 401, and about to be sent again with a new token
}

// Outcome is "ok" or the class of the failure.
func (o Observation) Outcome() string {
	if o.Err == nil {
		return "ok"
	}
	return o.Err.Class.String()
}

// Options configure a [Client].
type Options struct {
	// Project is the project id. Empty means that Projects is asked when the first message is
	// published.
	Project string
	// Projects is asked when Project is empty. Nil then is a config error, and so is plain http, over
	// which no credential is used.
	Projects ProjectSource
	// Endpoint is the base URL as [ResolveEndpoint] returns it. Empty means DefaultEndpoint.
	Endpoint string
	// Tokens authorises requests. Nil sends none, which only an emulator takes. It is not asked when
	// Endpoint is plain http: a token is never sent over it.
	Tokens TokenSource
	// Wire carries the requests. Required. The Client does not close it.
	Wire *wire.Client
	// MaxEntries bounds the messages of a request: 1 to [MaxEntries]. Zero means MaxEntries.
	MaxEntries int
	// MaxBytes bounds the data, attributes and keys of a request of more than one message: 1 to
	// [MaxRequestBytes]. Zero means DefaultMaxBytes. A larger single message travels alone.
	MaxBytes int
	// MaxMessageBytes bounds one message: 1 to [MaxMessageBytes]. Zero means MaxMessageBytes.
	MaxMessageBytes int
	// Observe is called after every request, from the goroutine of Publish; nil for nobody.
	Observe func(Observation)
	// Bisected is called each time a request is cut in two, likewise.
	Bisected func()
}

// Client publishes to the topics of one project. Use [New].
type Client struct {
	opts Options
	base string // without a slash at the end
	post func(context.Context, *wire.Request) (*wire.Reply, error)
}

// New returns a Client. It validates and does nothing else: no dial, no credential, no goroutine. An
// error is a config error that names the option.
func New(opts Options) (*Client, error) {
	if opts.Wire == nil {
		return nil, errors.New("pubsub: Options.Wire is required")
	}
	endpoint, err := parseEndpoint("endpoint", cmp.Or(opts.Endpoint, DefaultEndpoint))
	if err != nil {
		return nil, err
	}
	if endpoint.Plaintext {
		// With an emulator no key file is read and no metadata server asked, not even for a project.
		opts.Tokens, opts.Projects = nil, nil
	}
	if opts.Project != "" || opts.Projects == nil {
		if err := CheckProject(opts.Project); err != nil {
			return nil, err
		}
	}
	for _, bound := range []struct {
		name         string
		value        *int
		preset, most int
	}{
		{"max_entries", &opts.MaxEntries, MaxEntries, MaxEntries},
		{"max_bytes", &opts.MaxBytes, DefaultMaxBytes, MaxRequestBytes},
		{"max_message_bytes", &opts.MaxMessageBytes, MaxMessageBytes, MaxMessageBytes},
	} {
		if *bound.value = cmp.Or(*bound.value, bound.preset); *bound.value < 1 || *bound.value > bound.most {
			return nil, classify.Configf(service, "invalid_option", "%s is %d, it must be from 1 to %d", bound.name, *bound.value, bound.most)
		}
	}
	return &Client{opts: opts, base: endpoint.URL, post: opts.Wire.Do}, nil
}

// Publish sends msgs to topic, a short name, and returns one result per message, in order: nil when the
// topic has stored it, else a *classify.Error. It keeps nothing of msgs.
//
// When ctx ends, the request in flight is given up, so its messages may or may not have been stored;
// what has not been sent is not sent any more.
func (c *Client) Publish(ctx context.Context, topic string, msgs []Message) []error {
	errs := make([]error, len(msgs))
	if len(msgs) == 0 {
		return errs
	}
	if err := CheckTopic(topic); err != nil {
		fill(errs, err)
		return errs
	}
	project := c.opts.Project
	if project == "" {
		var err error
		if project, err = c.opts.Projects.Project(ctx); err == nil {
			err = CheckProject(project)
		}
		if err != nil {
			fill(errs, classify.Of(err))
			return errs
		}
	}
	p := &publication{
		client: c,
		url:    c.base + "/v1/projects/" + url.PathEscape(project) + "/topics/" + url.PathEscape(topic) + ":publish",
	}
	p.publish(ctx, msgs, errs)
	return errs
}

// fill gives every message of a request the same result.
func fill(errs []error, err error) {
	for i := range errs {
		errs[i] = err
	}
}

// unsent is the failure of messages that were not sent because ctx had ended.
func unsent(ctx context.Context) *classify.Error {
	return &classify.Error{
		Class: classify.Transient, Service: service, Code: wire.CodeNotSent,
		Err: fmt.Errorf("given up by the sender before it was sent: %w", context.Cause(ctx)),
	}
}
