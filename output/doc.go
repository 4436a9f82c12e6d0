// Package output holds the two Benthos outputs, ankusa_sqs and ankusa_pubsub. It wires the other
// packages together and decides nothing that one of them could decide.
//
// # One batch
//
// WriteBatch takes a batch of messages and follows one path: each message becomes a hook and is
// checked (hook.go), bodies too big for a message are stored (upload.go), what is left goes to the
// request scheduler and comes back as one result per message, and the failed ones are marked in one
// service.BatchError (batcherror.go). Encoding happens inside the scheduler's send, after admission,
// so the scheduler's ceilings bound memory.
//
// # Errors
//
// WriteBatch returns nil, or a *service.BatchError that marks exactly the failed messages; each of
// their errors is a *classify.Error and begins with its class. A failure never touches a neighbour.
// The engine logs what WriteBatch returns, so the output does not.
//
// # Life
//
// Constructors only validate: they start no goroutine, dial nobody and look up no credential. Connect
// starts the scheduler, looks nothing up and always succeeds. Close takes nothing new, lets what has
// left come back, for a bounded time, and leaves no goroutine. All methods may be called concurrently.
package output
