package output

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/message"
)

// maxUploads is how many bodies one output stores at the same time, over all its writes.
const maxUploads = 16

// uploader stores the bodies that are too big for a message.
type uploader struct {
	store     claim.Store // nil: none is configured
	inlineMax int
	slots     chan struct{} // one per upload in progress
	retry     retrier
}

func newUploader(store claim.Store, inlineMax int, retry retrier) *uploader {
	return &uploader{store: store, inlineMax: inlineMax, slots: make(chan struct{}, maxUploads), retry: retry}
}

// needed reports whether the hook's body has to be stored before its message can be sent.
func (u *uploader) needed(it *item) bool {
	return it.decoded == nil && it.hook.Claim == nil && len(it.hook.Body) > u.inlineMax
}

// unconfigured is the failure of a hook that needs a store where there is none.
func (u *uploader) unconfigured(size int) error {
	return classify.Permanentf("claim", "claim_check_unconfigured",
		"the body is %d bytes, above inline_max_bytes %d, and there is no store for it: set claim_check.store, for example s3://bucket", size, u.inlineMax)
}

// swap turns the hook into one that carries a claim and keeps the object to be stored. It stores
// nothing: a message that turns out to be refused must not leave an object behind. The object depends
// on the hook alone, so a retry rewrites it instead of leaving an orphan.
func (u *uploader) swap(it *item) error {
	h := &it.hook
	if u.store == nil {
		return u.unconfigured(len(h.Body))
	}
	sum := sha256.Sum256(h.Body)
	ref := claim.HookRef(h.TenantID, h.ID, h.ReceivedAt)
	object, err := claim.NewObject(ref, h.ID, h.ContentType, &h.ReceivedAt, h.Body, sum)
	if err != nil {
		return err
	}
	it.object = object
	h.Claim = &message.Claim{Ref: ref, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(h.Body))}
	h.Body = nil
	return nil
}

// stream is what has to be submitted together because it has an order: one message, or a group.
type stream []*item

// streams separates what can be submitted now from what has to wait for an upload. A message that has
// no order waits for its own upload only; of an ordered group with an upload all messages wait,
// because the order of a group is the order in which it is submitted.
func streams(items []*item) (ready []*item, waiting []stream) {
	groups := make(map[groupKey]int) // index in waiting of an ordered group with an upload
	for _, it := range items {
		if it.object != nil && it.ordered {
			if _, ok := groups[keyOf(it)]; !ok {
				groups[keyOf(it)] = len(waiting)
				waiting = append(waiting, nil)
			}
		}
	}
	for _, it := range items {
		if k, ok := groups[keyOf(it)]; ok && it.ordered {
			waiting[k] = append(waiting[k], it)
		} else if it.object != nil {
			waiting = append(waiting, stream{it})
		} else {
			ready = append(ready, it)
		}
	}
	return ready, waiting
}

type groupKey struct{ queue, group string }

func keyOf(it *item) groupKey { return groupKey{it.queue, it.group} }

// storeAll stores the objects of a stream, side by side, and sets the result of those that failed. Each is
// confirmed before the message that names it is sent.
func (u *uploader) storeAll(ctx context.Context, s stream, results []error) {
	var wg sync.WaitGroup
	for _, it := range s {
		if it.object != nil {
			wg.Go(func() { results[it.index] = u.put(ctx, it) }) // ends with the upload, or with ctx
		}
	}
	wg.Wait()
	holdBehind(s, results)
}

// put stores one object. While it waits for its next try it leaves its place to others.
func (u *uploader) put(ctx context.Context, it *item) error {
	err := u.retry.do(ctx, func() error {
		select {
		case u.slots <- struct{}{}:
			defer func() { <-u.slots }()
		case <-ctx.Done():
			return withdrawn(ctx)
		}
		return u.store.Put(ctx, it.object)
	})
	it.object = nil // the body is not held any longer than it takes to store it
	return err
}

// holdBehind fails the messages of an ordered stream that stand behind one whose body could not be
// stored for now: it will come again, and they must not have passed it. A permanent failure frees the
// rest.
func holdBehind(s stream, results []error) {
	held := false
	for _, it := range s {
		switch err := results[it.index]; {
		case err == nil && held:
			results[it.index] = classify.Transientf("claim", "held", "held behind a message of the same group whose body could not be stored")
		case err != nil && classify.Of(err).Class != classify.Permanent:
			held = true
		}
	}
}

// withdrawn is the failure of a message whose write ended before anything was done with it.
func withdrawn(ctx context.Context) error {
	return classify.Transientf("output", "", "not sent, the write was cancelled: %w", context.Cause(ctx))
}
