// Package classify says what a failure means for the one who sent: try again, slow down, mend the
// configuration, or set the message aside.
//
// # The promise
//
// Every failure that leaves this program's outputs is an [*Error], and its text begins with its
// class: "permanent", "config", "throttled" or "transient". That first word is what a pipeline
// routes on (a fallback output sees the text in @fallback_error), so it never changes. After it come
// the service, the HTTP status and the service's own code, each left out when there is none, then a
// colon and the message:
//
//	permanent: sqs 400 InvalidMessageContents: the message holds characters SQS does not allow
//	transient: pubsub: connection reset by peer
//
// # The rules
//
// The code decides the class; the status decides only where no code is known, and who is at fault
// according to the service never does: throttling arrives as 403, as 400 and as a sender's fault.
// What no rule explains is transient, because a wrong guess of "transient" costs a retry and a wrong
// guess of "permanent" costs a good message.
//
// # Concurrency
//
// Everything here is pure: no function keeps or shares state. An Error is not changed after it is
// made, so it may be shared by all entries of a failed request.
package classify
