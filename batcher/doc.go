// Package batcher lets concurrent callers share requests and decides which request goes next.
//
// A [Set] holds the queues of one output and a [Batcher] each of them. Submit hands over entries
// and blocks until each has its result; requests are made by a [SendFunc], which knows the service.
// The package knows no cloud.
//
// # When a request leaves
//
// When it is full, by entries or bytes; when its oldest entry that could leave has waited for
// Linger since it was admitted; or when nobody is left who could add to it: as many calls as there
// can be (MaxInFlight) have had all their entries admitted, in all their queues, and await
// results. A retry that is due leaves at once and takes along what waits: it has lingered before.
//
// # Order
//
// A group has at most one request in flight, and its entries leave in the order of admission,
// which within one Submit is their order. A retry goes before what waits of its group, and all of
// the group waits for it. Entries without a group have no order.
//
// A permanent failure frees its group. An entry that is given up after any other failure takes
// with it what waits behind it in its group, in the queue or in Submit for room (code [CodeHeld]):
// their callers have read them already and will deliver the failed one again after them. An entry
// whose caller has gone leaves the queue as if it had never been there, and fails nobody else's; so
// does one that is not let in to sit out a pause (code "paused"), and later ones may pass it.
//
// One request may hold several entries of a group, in order. If the service takes some and refuses
// others, those it took are done and the others follow them. StrictOrder rules that out by sending
// one entry of a group at a time.
//
// # Fairness
//
// Requests are filled round robin across tenants, with a start that moves on, and across the
// groups of a tenant. A turn is one entry, or as many of one group as fit. Callers that wait for
// room take turns too.
//
// # Memory
//
// QueueMax, QueueMaxBytes and QueueTenantMax bound what waits; an entry beyond them waits in Submit
// for its turn. An entry gives its room back when it leaves in a request and when it fails unsent.
//
// # Failures
//
// Throttled and transient failures are retried, see [Options]. A retry that has not left by the end
// of MaxElapsedTime, because the queue is paused or busy, fails then; one that waits behind a request
// of its group may leave once more when that is back. Throttling slows the whole queue and no other:
// half as many requests in flight and a pause, at least for the service's Retry-After, and one more
// request in flight after each full window of sound ones.
//
// Callers that wait are callers that do not add to other queues, which ManyQueues is about.
//
// # Concurrency
//
// Methods may be called from any goroutine. SendFunc runs on goroutines of the package, several at
// once, never with a lock held. A Batcher without work has none, and no timer. Close waits for all.
//
// # How it is built
//
// A Batcher is a state machine behind one mutex. Every transition (a call starts, is withdrawn or
// abandoned; a request is back; time has passed) takes the lock, changes what it is about, and ends
// in release, the only place that draws conclusions: it lets due alarms ring, admits what there is
// room for, launches what may leave, until nothing changes, and arms the timer. The invariants,
// which TestModel holds against a model of its own after every step, and TestSetModel for several
// queues at once:
//
//   - An item is in exactly one place: in its lane, parked until its retry, or in a request.
//   - A lane sits in a pool exactly when its head may leave now; what it offers is in the pool's sum.
//   - A retry that could leave has an alarm for the end of its time, if that has one: its own, or its
//     group's if it is first.
//   - If MaxInFlight is set, the gauge lists a queue that would send more if nobody were left who
//     could add.
//   - A group with a request in flight, or a retry that is not due, offers nothing.
//   - What waits is the sum over lanes and parked items, and a call is in line for room exactly
//     while its next entry does not fit or others wait before it.
//   - At the end of release nothing could leave and nobody could be admitted.
//   - A call's open count is its entries without a result; at 0 it is told, once, as the last act
//     under the lock, and from then on not touched.
//
// Each of these costs constant time per entry, whatever waits, apart from two heap steps when a
// lane's head changes.
//
// # Designs turned down
//
// A goroutine per queue that owns the state would need a channel hop for each Submit and each
// result, a second way in for cancellation, and a life of its own to end when the queue is idle.
// With the mutex a Submit admits its entries, and launches what is full, on its own goroutine.
//
// A timer per request, retry or group fires into a state that has moved on, so that each needs a
// check whether it still means anything. Here one timer only says: look again.
//
// Letting a caller that waits for room wake up and try again favours the lucky one and wakes the
// rest for nothing. Here whoever frees room admits in its name, in turn.
//
// Flushing as an event, at the moment the last caller arrives, forgets what is not sendable then:
// with one call at a time, each next request of a group would linger. The gauge is a level.
//
// Giving out a group's entries one per turn, as for those without order, puts one entry of each
// group into the same request and holds them all: eight busy groups would have one request in
// flight where they could have eight.
//
// A jitter draw per entry would return a failed request of a thousand as a thousand requests.
// The draw is the request's.
package batcher
