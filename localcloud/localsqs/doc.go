// Package localsqs is a strict Amazon SQS in memory, over its JSON protocol. It serves as the test
// double of our client and is what `ankusa-connect local` runs.
//
// # Strictness
//
// A request is refused for what the service refuses it for, with the service's code, status and (as
// far as it is known) text: the signature, the size of a message and of a batch, the characters of a
// body, message attributes, entry ids, group and deduplication ids, delays. A duplicate within five
// minutes is answered like the original and stored once. Sizes count as the service counts them:
// body plus each attribute's name, data type and value, in bytes. Numbers come from the quota pages
// of the Amazon SQS developer guide.
//
// Nothing here is shared with our client, and signatures are verified without the SDK's signer: a
// fake that shares the client's encoder agrees with the client's mistakes. The package's tests use
// the AWS SDK's own client as the independent peer, and run one conformance suite against this
// package and against other SQS implementations when they are at hand.
//
// # What is simplified
//
// Each action's file says what it supports, simplifies and omits. In general: one region; accounts
// only name queues; no policies, encryption, redrive, tags or message moves; the query (XML) protocol
// is not spoken, although error replies can be scripted in its shape; messages stay until deleted or
// purged, whatever the queue's retention.
//
// # Faults
//
// [SQS.Faults] is a script: see localcloud.Fault. A request counts towards its action's ordinal
// when its body has been read, before its signature is checked, so a script may count on ordinals
// whatever happens to the requests.
//
// # Inspection
//
// [SQS.Messages] returns what a queue stored, in order, [SQS.Stats] how it came. Bodies are kept
// once and shared with what Messages returns.
//
// # Concurrency
//
// An SQS may be used from any goroutine. It owns none: a request's work happens on the request's
// goroutine and ends with its context.
package localsqs
