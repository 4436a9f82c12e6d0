package output

import (
	"context"
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/ankusa-connect/ankusa-connect/batcher"
	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/config"
)

// maxAwait bounds how long a cancelled write, and Close, wait for a request that has left. Longer
// would hold up a forced stop, shorter would nack what the cloud is about to take.
const maxAwait = 2 * time.Second

// cloud is what the two services do differently.
type cloud interface {
	// address resolves what the service needs to know of a hook: queue, group, attributes. An error is
	// permanent and concerns this message alone.
	address(v *view, i int, it *item) error
	// measure checks an item in its final form and sets its size. Errors are address's.
	measure(it *item) error
	// send encodes and sends, in one request where it can, and returns one result per item.
	send(ctx context.Context, queue string, items []*item) []error
	// close ends what was started for sending. It is called once no send runs any more.
	close(ctx context.Context) error
}

// output is the service.BatchOutput of both plugins.
type output struct {
	conf    config.Common
	hooks   *hookReader
	cloud   cloud
	store   claim.Store // nil when none is configured
	upload  *uploader
	metrics *metrics
	log     *service.Logger
	options batcher.Options
	results func([]error) // told of each write's results; may be nil
	outage  outage

	warnPermanent sync.Once

	mu        sync.RWMutex // guards the fields below; not held during a write
	scheduler *batcher.Set[*item]
	closed    bool
}

// newOutput puts the parts together. It starts nothing.
func newOutput(conf config.Common, c cloud, store claim.Store, m *metrics, log *service.Logger, options batcher.Options) *output {
	return &output{
		conf:    conf,
		hooks:   newHookReader(conf.Hook),
		cloud:   c,
		store:   store,
		upload:  newUploader(store, conf.InlineMaxBytes, newRetrier(conf.Retry)),
		metrics: m,
		log:     log,
		options: options,
		outage:  outage{log: log},
	}
}

// Connect starts the scheduler. It looks nothing up: whether the queue is there shows on the first
// request, and a look-up would need rights that sending does not.
func (o *output) Connect(context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return service.ErrEndOfInput
	}
	if o.scheduler != nil {
		return nil
	}
	if o.conf.Ordered && o.conf.MaxInFlight > 1 {
		o.log.Warnf("max_in_flight is %d on an ordered output: concurrent writes reach the queue in any order; set it to 1, or leave it out, to keep order", o.conf.MaxInFlight)
	}
	scheduler, err := batcher.NewSet(o.send, o.options)
	if err != nil {
		return err
	}
	o.scheduler = scheduler
	return nil
}

// send is the scheduler's: the cloud's, watched for outages.
func (o *output) send(ctx context.Context, queue string, items []*item) []error {
	errs := o.cloud.send(ctx, queue, items)
	o.outage.note(errs)
	return errs
}

// WriteBatch sends a batch and returns nil, or a *service.BatchError that marks exactly the messages
// that failed. When ctx ends, what has not left is withdrawn and fails, and a request that has left is
// awaited for a bounded time.
func (o *output) WriteBatch(ctx context.Context, batch service.MessageBatch) error {
	o.mu.RLock()
	scheduler := o.scheduler
	o.mu.RUnlock()
	if scheduler == nil {
		return service.ErrNotConnected
	}
	results := make([]error, len(batch))
	items := o.prepare(batch, results)
	o.dispatch(ctx, scheduler, items, results)
	o.metrics.results(results)
	if o.results != nil {
		o.results(results)
	}
	o.advise(results)
	return batchError(batch, results)
}

// prepare makes an item of each message, and a result of each that can't be one.
func (o *output) prepare(batch service.MessageBatch, results []error) []*item {
	v := newView(batch)
	all := make([]item, len(batch))
	items := make([]*item, 0, len(batch))
	for i := range batch {
		it := &all[i]
		it.index = i
		if results[i] = o.prepareOne(v, i, it); results[i] == nil {
			items = append(items, it)
		}
	}
	return items
}

func (o *output) prepareOne(v *view, i int, it *item) error {
	if err := o.hooks.read(v, i, it); err != nil {
		return err
	}
	if err := o.cloud.address(v, i, it); err != nil {
		return err
	}
	if o.upload.needed(it) {
		if err := o.upload.swap(it); err != nil {
			return err
		}
	}
	return o.cloud.measure(it)
}

// dispatch submits what is ready at once, and the rest as its uploads end, so that a store in trouble
// concerns only the messages that need it. A write that makes several submissions counts several times
// in the scheduler's gauge: a request may then leave before its linger is over, which costs nothing but
// a part of it.
func (o *output) dispatch(ctx context.Context, scheduler *batcher.Set[*item], items []*item, results []error) {
	ready, waiting := streams(items)
	var wg sync.WaitGroup
	for _, s := range waiting {
		wg.Go(func() { // ends with its uploads and its submission, or with ctx
			o.upload.storeAll(ctx, s, results)
			o.submit(ctx, scheduler, s, results)
		})
	}
	o.submit(ctx, scheduler, ready, results)
	wg.Wait()
}

// submit hands over what has no result yet and waits for one for each.
func (o *output) submit(ctx context.Context, scheduler *batcher.Set[*item], items []*item, results []error) {
	entries := make([]batcher.Entry[*item], 0, len(items))
	for _, it := range items {
		if results[it.index] != nil {
			continue
		}
		e := batcher.Entry[*item]{Value: it, Queue: it.queue, Tenant: it.tenant(), Size: it.size, WireSize: it.wire}
		if it.ordered {
			e.Group = it.group
		}
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		return
	}
	for k, err := range scheduler.Submit(ctx, entries) {
		if err != nil {
			results[entries[k].Value.index] = classify.Of(err)
		}
	}
}

// advise says once what keeps a message that is refused for good from coming back for ever. The
// failure itself is the engine's to log.
func (o *output) advise(results []error) {
	for _, err := range results {
		if err != nil && classify.Of(err).Class == classify.Permanent {
			o.warnPermanent.Do(func() {
				o.log.Warn("A message was refused for good. If no fallback output takes such messages, the input delivers them again and again: route errors that begin with \"permanent\" or \"config\" to a dead-letter output, see docs/errors.md. This is said once.")
			})
			return
		}
	}
}

// Close takes nothing new and waits, for a bounded time, for what has left. The engine calls it
// without a deadline, once no write runs any more. A second call does nothing.
func (o *output) Close(ctx context.Context) error {
	o.mu.Lock()
	scheduler, closed := o.scheduler, o.closed
	o.scheduler, o.closed = nil, true
	o.mu.Unlock()
	if closed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, min(o.conf.Timeout, maxAwait))
	defer cancel()
	var err error
	if scheduler != nil {
		err = scheduler.Close(ctx)
	}
	if o.store != nil {
		if e := o.store.Close(ctx); err == nil {
			err = e
		}
	}
	if e := o.cloud.close(ctx); err == nil {
		err = e
	}
	return err
}
