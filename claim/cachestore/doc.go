// Package cachestore keeps claims in a Benthos cache resource, so that every store for which
// somebody has written a cache can hold them: in a Redpanda Connect build that is S3, Google Cloud
// Storage, Redis, NATS key-value and others, with that resource's own credentials and retries.
//
// # What a cache promises
//
// Put returns nil when the cache's Set does, and is as durable as that: a memory cache forgets at a
// restart, and a cache with a time to live forgets when it is over, claims that nobody has redeemed
// included. Objects go by the keys that readers derive from claims
// (claims/tenant=…/dt=…/…); a cache that puts a prefix before its keys hides them from the
// gateway. The file cache of Benthos makes no folders and can't take such keys: for a directory
// there is dirstore.
//
// # Errors
//
// A cache's errors have no classes, so they are transient, all but the lack of the cache itself.
//
// # Memory
//
// A cache takes one slice, and may keep it. So this store copies each object once, into a slice that
// is not used again.
//
// # Concurrency
//
// A Store may be used from any goroutine, as a cache may.
package cachestore
