// Package localpubsub is a strict Google Cloud Pub/Sub in memory, over its REST API. It serves as
// the test double of our client and is what `ankusa-connect local` runs.
//
// # Strictness
//
// A request is refused for what the service refuses it for, with the service's status and (as far
// as it is known) text, and always as a whole: one bad message refuses all of them, two ordering
// keys in one request refuse it, and nothing of a refused request is stored. Sizes count as the
// service counts them, in bytes: data before base64, attribute names and values, ordering key; the
// HTTP body has its own limit. Numbers come from https://cloud.google.com/pubsub/quotas.
//
// Where the service's JSON parser is known to be lenient (single quotes, bare keys) or is not
// documented (a field given twice), this one refuses: a client has no reason to send such things.
//
// Nothing here is shared with our client. The package's tests run one conformance suite against
// this package and against Google's own emulator when it is at hand; the suite's table names every
// difference.
//
// # What is simplified
//
// Each action's file says what it supports, simplifies and omits. In general: projects come into
// being when named; no policies, schemas (but see [TopicOptions.Reject]), filters, push, dead
// letters, retention or snapshots; lists have one page; gRPC is not spoken.
//
// # Faults
//
// [PubSub.Faults] is a script: see localcloud.Fault. Actions are named as google.pubsub.v1 names
// its methods ("Publish", "Pull", "CreateTopic" …), a resource by the last segment of its name. A
// request counts towards its action's ordinal when its body has been read, before its token is
// checked, so a script may count on ordinals whatever happens to the requests. Of the entry faults,
// Refuse answers INVALID_ARGUMENT for the whole request, Drop and DropUnstored leave out a message
// id, Twice, Unknown and ExtraUnknown add one; the others do nothing. [TooFewIDs], [TooManyIDs] and
// their neighbours are shorthands.
//
// # Inspection
//
// [PubSub.Published] returns what a topic stored, in order, [PubSub.Stats] and [PubSub.Requests]
// how it came. The data of a message is in memory once, whatever the number of subscriptions, and
// is shared with what Published and Pull return.
//
// # Time
//
// The clock is [Options.Now]; waiting is done on timers that end with the request's context. No
// lock is held while waiting, so a PubSub served over a localcloud.PipeListener keeps a
// testing/synctest bubble's clock running.
//
// # Concurrency
//
// A PubSub may be used from any goroutine. It owns none: a request's work happens on the request's
// goroutine and ends with its context.
package localpubsub
