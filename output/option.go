package output

import (
	"context"
	"net"
	"os"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/config"
)

// An Option changes what the registered outputs do, for programs that embed them.
type Option func(*options)

type options struct {
	getenv    func(string) string
	sqs       func(*config.SQS)
	pubsub    func(*config.PubSub)
	openStore func() (claim.Store, error) // nil: by the configuration
	dial      DialFunc                    // nil: TCP
	results   func([]error)               // nil: nobody
}

// DialFunc makes a connection to a service.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// WithDial replaces how the outputs connect to SQS and Pub/Sub, not to stores and credential issuers:
// for tests over net.Pipe, and for networks that need a dialler of their own. No proxy is used then.
func WithDial(dial DialFunc) Option { return func(o *options) { o.dial = dial } }

func newOptions(opts []Option) options {
	o := options{getenv: os.Getenv}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// Local says where everything goes that the outputs send, whatever a pipeline and the environment say.
type Local struct {
	SQSEndpoint     string // http://127.0.0.1:4566
	Region          string
	AccessKeyID     string
	SecretAccessKey string

	PubSubEndpoint string // http://127.0.0.1:4588
	Project        string // when the pipeline names none

	// OpenStore opens the store of the bodies too big for a message. Each output opens its own.
	OpenStore func() (claim.Store, error)
	// Results is told of each write's results, an element per message: nil, or a *classify.Error. It is
	// called from any goroutine and must not keep the slice. Nil is nobody.
	Results func([]error)
}

// WithLocal forces the outputs to address, credentials and store of l, and hides the environment from
// them, so that no hook can reach a real cloud.
func WithLocal(l Local) Option {
	return func(o *options) {
		o.getenv = func(string) string { return "" }
		o.openStore, o.results = l.OpenStore, l.Results
		o.sqs = func(c *config.SQS) {
			c.Endpoint, c.Region = l.SQSEndpoint, l.Region
			c.Credentials = config.Credentials{ID: l.AccessKeyID, Secret: l.SecretAccessKey}
			c.TLS = nil
		}
		o.pubsub = func(c *config.PubSub) {
			c.Endpoint, c.CredentialsJSON = l.PubSubEndpoint, ""
			if c.Project == "" {
				c.Project = l.Project
			}
			c.TLS = nil
		}
	}
}
