package local

import (
	"context"
	"sync"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/claim/dirstore"
)

// claims is the directory of big bodies, with a memory of what was put into it, so that a claim which
// it does not hold is known for lost or for somebody else's.
type claims struct {
	*dirstore.Store

	mu  sync.Mutex      // guards put
	put map[string]bool // by key
}

func newClaims(dir string) *claims {
	return &claims{Store: dirstore.New(dir), put: map[string]bool{}}
}

// Put implements claim.Store.
func (c *claims) Put(ctx context.Context, o *claim.Object) error {
	if err := c.Store.Put(ctx, o); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put[o.Key()] = true
	return nil
}

// stored reports whether Put has stored key in this run.
func (c *claims) stored(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.put[key]
}
