package local

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"sync"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/localcloud"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localpubsub"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localsqs"
	"github.com/ankusa-connect/ankusa-connect/output"
)

// Where the clouds listen unless the port is taken; the ports that emulators of the two use.
const (
	sqsAddr    = "127.0.0.1:4566"
	pubsubAddr = "127.0.0.1:4588"
	project    = "local-project"
)

// clouds are the local SQS and Pub/Sub and the directory of big bodies.
type clouds struct {
	sqs          *localsqs.SQS
	pubsub       *localpubsub.PubSub
	sqsServer    *localcloud.Server
	pubsubServer *localcloud.Server
	claims       *claims
	claimsDir    string

	mu      sync.Mutex     // guards refused
	refused map[string]int // hooks refused before any request, by code
}

// start serves both clouds on loopback.
func start() (*clouds, error) {
	dir, err := os.MkdirTemp("", "ankusa-connect-local-claims-")
	if err != nil {
		return nil, fmt.Errorf("no directory for big bodies: %w", err)
	}
	c := &clouds{
		sqs:       localsqs.New(localsqs.Options{AutoCreate: true}),
		pubsub:    localpubsub.New(localpubsub.Options{AutoCreate: true, Project: project}),
		claims:    newClaims(dir),
		claimsDir: dir,
		refused:   map[string]int{},
	}
	sqsListener, err := listen(sqsAddr)
	if err != nil {
		c.close()
		return nil, err
	}
	c.sqsServer = localcloud.Serve(sqsListener, c.sqs)
	pubsubListener, err := listen(pubsubAddr)
	if err != nil {
		c.close()
		return nil, err
	}
	c.pubsubServer = localcloud.Serve(pubsubListener, c.pubsub)
	return c, nil
}

// listen takes addr, or another port of the same host when that one is taken.
func listen(addr string) (net.Listener, error) {
	if l, err := localcloud.Listen(addr); err == nil {
		return l, nil
	}
	host, _, _ := net.SplitHostPort(addr)
	return localcloud.Listen(net.JoinHostPort(host, "0"))
}

// option binds the outputs to these clouds.
func (c *clouds) option() output.Option {
	return output.WithLocal(output.Local{
		SQSEndpoint:     c.sqsServer.URL(),
		Region:          localsqs.DefaultRegion,
		AccessKeyID:     localsqs.DefaultAccessKeyID,
		SecretAccessKey: localsqs.DefaultSecretAccessKey,
		PubSubEndpoint:  c.pubsubServer.URL(),
		Project:         project,
		OpenStore:       func() (claim.Store, error) { return c.claims, nil },
		Results:         c.count,
	})
}

// count counts what never became a request: no cloud can tell of it.
func (c *clouds) count(results []error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, err := range results {
		if e := classify.Of(err); e != nil && e.Class == classify.Permanent && e.Status == 0 {
			c.refused[e.Code]++
		}
	}
}

// close ends both servers and removes the big bodies.
func (c *clouds) close() {
	for _, s := range []*localcloud.Server{c.sqsServer, c.pubsubServer} {
		if s != nil {
			_ = s.Close()
		}
	}
	_ = c.claims.Close(context.Background())
	_ = os.RemoveAll(c.claimsDir)
}

// refusedLocally returns the counts so far.
func (c *clouds) refusedLocally() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.refused)
}
