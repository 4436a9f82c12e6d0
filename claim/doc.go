// Package claim stores the bodies that are too big for a message, and names them.
//
// A message carries either a hook's body or a claim: a ref that names the body's place in an
// object store, and the body's SHA-256. Readers redeem the ref at a gateway, which finds the bytes
// by the ref alone. The formats are those of docs/message-format.md, to the byte: Ref and ID are
// the names, NewPack lays out the object (a plain ZIP), Locate and Redeem read one back the way the
// gateway does.
//
// # Stability
//
// Everything here is a pure function of the hook. HookRef takes nothing but the hook's tenant, id
// and time of receipt, and the same claims always give the same bytes, so that a retry or a
// redelivery rewrites one object instead of leaving orphans. That is why nothing in this package
// asks for the time or for randomness.
//
// # Order of writing
//
// A Store's Put returns only when the store has confirmed the object, and the message that names
// it is sent afterwards. A crash in between leaves an object that no message names, which the
// store's own expiry removes; never a message that names nothing.
//
// # Memory
//
// An Object is a list of segments. The bodies among them are the caller's slices, read and never
// copied, so they must not change until the Object is done with.
//
// # Concurrency
//
// IDs and Refs are values. Any number of goroutines may use one Object, each with a Reader of its
// own. Stores may be used from any goroutine.
//
// # Stores
//
// The sub-packages write to S3 (s3store), Google Cloud Storage (gcsstore), a directory (dirstore)
// and any Benthos cache (cachestore). ParseStoreURL reads the configuration that chooses one. This
// package imports none of them, and nothing else of ours but classify.
package claim
