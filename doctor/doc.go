// Package doctor is `ankusa-connect doctor`: it looks at everything that a pipeline's ankusa_sqs and
// ankusa_pubsub outputs need and says, a line each, what is right, what is not, and how to mend it.
//
// # What it looks at
//
// The file is read as `run` reads it, environment variables and all, and every output of ours is found
// wherever it is nested. For each of them: the address and who named it, the clock against the
// service's, the credentials and where they were found, the queue or topic and what is known of it,
// the order of messages on their way, the fallback around it, and the store of big bodies.
//
// # What it does not do
//
// It sends no message and starts no component of the pipeline: the outputs are never built, the inputs
// neither. Towards a queue or topic it only reads. The one thing it writes is a probe in the claim
// store, which it removes again. Looking at a queue or topic takes rights that sending does not need,
// so a right that is missing makes a line "skipped" or "warning" that names the right, not "failure".
//
// # What it prints
//
// Each line appears as soon as it is known. No secret is printed: known ones are cut out of whatever
// is printed, also out of errors that quote somebody else's text. Key ids are shortened.
//
// # Time
//
// Each look-up and each request has the whole --timeout to itself, so that one mute address does not
// take the time of the next.
package doctor
