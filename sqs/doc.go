// Package sqs sends messages to Amazon SQS, and to whatever speaks its JSON protocol, by hand: it
// builds the request, signs it, posts it and reads the reply entry by entry.
//
// # Results
//
// Send returns one result for each entry, in the order given. Nil means that the service named the
// entry as stored and that the MD5 it returned is that of the body sent. Everything else is a
// [*classify.Error]. An error never fails a neighbour: an entry that the reply does not mention was not
// stored, a repeated id counts once, an id that was never sent is logged and ignored.
//
// A failure of a whole request is the failure of each of its entries, with one exception. A code that
// condemns a message (the permanent class, and BatchRequestTooLong) is never applied to more than one
// entry: the request is split in two, the first half goes first, until a single entry is left to blame.
// When a part fails in a way that no message caused, what has not been sent yet gets that failure too,
// unsent, so that a service in trouble isn't hammered.
//
// # Order
//
// On a FIFO queue the entries of a group leave in the order given, in one request wherever possible. An
// entry is never sent after an earlier one of its group has failed in a way that will be retried: it is
// reported as transient "held" instead, and other groups go on. A permanent failure frees the group.
// Inside one request SQS decides each entry alone, so one of them can fail while a later one of its
// group is stored; who can't have that gives Send one entry of a group at a time.
//
// # Resending
//
// Send resends by itself only what makes the next try different: once with refreshed credentials after
// ExpiredToken (and after a refused key, if the source has got another one), once with a corrected clock
// when a signature was refused and the reply's Date is minutes away. Package wire resends once what died
// on a stale connection. All other retries are the caller's. Every try is signed anew.
//
// # Concurrency
//
// All methods may be called from any goroutine. Send keeps nothing of its entries after it returned, so
// their bodies may be pooled. The package starts no goroutine but the one that refreshes credentials,
// and that one ends at [CachedCredentials.Close].
package sqs
