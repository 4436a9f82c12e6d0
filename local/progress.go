package local

import (
	"context"
	"fmt"
	"io"
	"time"
)

// progressInterval is how often a run says where it is, when anything has changed.
const progressInterval = 2 * time.Second

// progress reports to w until ctx ends.
func (c *clouds) progress(ctx context.Context, w io.Writer) {
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	last := 0
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		messages, requests := c.counts()
		if messages != last {
			fmt.Fprintf(w, "local: %s messages in %s requests so far\n", thousands(messages), thousands(requests))
			last = messages
		}
	}
}

// counts sums what both clouds have stored.
func (c *clouds) counts() (messages, requests int) {
	for _, name := range c.sqs.Queues() {
		s := c.sqs.Stats(name)
		messages, requests = messages+s.Messages, requests+s.Requests
	}
	for _, name := range c.pubsub.Topics() {
		s := c.pubsub.Stats(name)
		messages, requests = messages+s.Messages, requests+s.Requests
	}
	return messages, requests
}
