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
	store     *openedStore // nil: none is configured
	inlineMax int
	slots     chan struct{} // one per upload in progress
	retry     retrier
}

func newUploader(store *openedStore, inlineMax int, retry retrier) *uploader {
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

// put stores one hook's body and, once that is confirmed, turns the hook into one that carries a
// claim. The object depends on the hook alone, so a retry rewrites it instead of leaving an orphan.
func (u *uploader) put(ctx context.Context, h *message.Hook) error {
	sum := sha256.Sum256(h.Body)
	ref := claim.HookRef(h.TenantID, h.ID, h.ReceivedAt)
	object, err := claim.NewObject(ref, h.ID, h.ContentType, &h.ReceivedAt, h.Body, sum)
	if err != nil {
		return err
	}
	if err := u.retry.do(ctx, func() error { return u.store.Put(ctx, object) }); err != nil {
		return err
	}
	h.Claim = &message.Claim{Ref: ref, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(h.Body))}
	h.Body = nil // the message no longer holds it, so the queue's ceilings need not count it
	return nil
}

// all stores what needs storing among items, side by side, and sets the result of those that failed.
// It returns when every upload has an end, because the order of a group is the order of items.
func (u *uploader) all(ctx context.Context, items []*item, results []error) {
	var wg sync.WaitGroup
	for _, it := range items {
		if !u.needed(it) {
			continue
		}
		if u.store == nil {
			results[it.index] = u.unconfigured(len(it.hook.Body))
			continue
		}
		select {
		case u.slots <- struct{}{}:
		case <-ctx.Done():
			results[it.index] = withdrawn(ctx)
			continue
		}
		wg.Go(func() { // ends with the upload, or with ctx
			defer func() { <-u.slots }()
			results[it.index] = u.put(ctx, &it.hook)
		})
	}
	wg.Wait()
	holdBehind(items, results)
}

// holdBehind fails the messages of an ordered group that stand behind one whose body could not be
// stored for now: it will come again, and they must not have passed it. A permanent failure frees its
// group.
func holdBehind(items []*item, results []error) {
	type key struct{ queue, group string }
	var held map[key]bool
	for _, it := range items {
		if !it.ordered {
			continue
		}
		k := key{it.queue, it.group}
		switch err := results[it.index]; {
		case err == nil && held[k]:
			results[it.index] = classify.Transientf("claim", "held", "held behind a message of the same group whose body could not be stored")
		case err != nil && classify.Of(err).Class != classify.Permanent:
			if held == nil {
				held = make(map[key]bool)
			}
			held[k] = true
		}
	}
}

// withdrawn is the failure of a message whose write ended before anything was done with it.
func withdrawn(ctx context.Context) error {
	return classify.Transientf("output", "", "not sent, the write was cancelled: %w", context.Cause(ctx))
}
