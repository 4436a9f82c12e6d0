// Package s3store keeps claims in an S3 bucket, or in any server that speaks S3, through the AWS
// SDK's client.
//
// # Confirmation
//
// Put sends the object's CRC-32, which S3 checks before it answers, and returns nil only for a 200
// that carries an ETag and, where the server sends a checksum back, the same one. Over plain http
// the body's SHA-256 is signed as well.
//
// # Retries
//
// The SDK's own retries are off: how long a hook may wait is the sender's to say. Two things are
// tried again at once. A request that died on a kept-alive connection is sent on a fresh one, and
// expired credentials are dropped, fetched anew and used once more.
//
// # Rights
//
// Put needs s3:PutObject on claims/* of the bucket (and, with a customer key, kms:GenerateDataKey)
// and nothing else. Check tries s3:DeleteObject too and can do without; ReadRange needs
// s3:GetObject.
//
// # Concurrency
//
// A Store may be used from any goroutine. It starts none of its own that outlives Close.
package s3store
