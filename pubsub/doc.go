// Package pubsub publishes messages to Google Cloud Pub/Sub over its REST API, topics.publish, by hand
// over HTTP, and says of every single message whether the topic took it.
//
// # Requests
//
// [Client.Publish] cuts what it is given into requests that hold at most MaxEntries messages, MaxBytes
// of data, attributes and keys, and [MaxBodyBytes] of HTTP body (base64 adds a third, so this one is
// often the first to be reached), and one ordering key each. Requests of one Publish leave one after
// the other; callers who want several in flight call Publish several times.
//
// # Results
//
// Publish returns one error per message, in order; nil means stored: a 200 that carries one message id
// for each message of the request. Every other result is a *classify.Error. The API answers for a
// request as a whole, so a failure is that of every message in it, with one exception: INVALID_ARGUMENT
// means that at least one message was refused, nobody says which, and the request is bisected. Halves
// that were accepted are never sent again, and a part that meets another failure on the way (a 503, a
// lost connection) fails alone with it. One bad message of 1,000 is found with about 20 extra
// requests; n bad ones out of n cost 2n-1 requests and never more. Answers that speak of the request
// or the topic and not of a message (a malformed resource name, FAILED_PRECONDITION, a storage policy)
// are config errors and never bisected.
//
// # Order
//
// Messages of one ordering key are sent in the order given, the left half of a bisected request first.
// Once a message of a key has failed otherwise than permanently, nothing later of that key is sent in
// the same call: it fails as transient, code "held". A permanent failure frees the key. There is no
// state that outlives the call, so a key is never left paused by an outage.
//
// # Credentials
//
// [Credentials] finds a Google credential, exchanges it for an access token and keeps it: one look-up
// serves all waiters and is not ended by one of them giving up, a token is renewed before it ends and
// serves until it does when renewal fails, a failed look-up is not remembered, and files are read again
// each time. A token is never sent over plain http, and with an emulator no credential is looked for.
//
// # Concurrency
//
// Client and Credentials may be used from any goroutine. Client starts none. Credentials runs one while
// a look-up lasts and Close waits for it.
package pubsub
