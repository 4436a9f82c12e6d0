// Package gcsstore keeps claims in a Google Cloud Storage bucket, through the JSON API.
//
// # Confirmation
//
// Put returns nil only for an answer that names the object and whose size and CRC-32C (or, where a
// server sends none, MD5) are those of what was sent.
//
// # Objects that are there already
//
// A retry rewrites the object that its first try may have made, and Cloud Storage counts that as
// deleting the old one: a retention policy forbids it, and so does the lack of
// storage.objects.delete. So when a put is refused with 403, Put looks whether the object is there
// with the same bytes, which is as good.
//
// # Rights
//
// Put needs storage.objects.create on the bucket, and for retries storage.objects.delete or
// storage.objects.get. Check tries storage.objects.delete and can do without; ReadRange needs
// storage.objects.get.
//
// # Credentials
//
// The token goes over https only: an emulator, and any other server over plain http, is asked
// without, and the source of tokens is not. One 401 drops the token, and the request is sent once
// more.
//
// # Concurrency
//
// A Store may be used from any goroutine. It starts none of its own that outlives Close.
package gcsstore
