// Package local is `ankusa-connect local`: it runs any pipeline, unchanged, against an SQS and a
// Pub/Sub on this machine and shows what arrived.
//
// # What is forced and what stays real
//
// Both outputs are registered again in a copy of the environment, bound to the local clouds' address,
// credentials and region and to a local store for big bodies, whatever the pipeline or the process
// environment says, so that no hook can reach a real cloud through them. Everything else in the
// pipeline is what it says: inputs are read and acked, other outputs are written.
//
// # The table
//
// When the run ends a table says, for each queue and topic, what arrived: messages, requests, messages
// per request, messages stored twice, groups, claims and whether each redeems to the exact bytes, and
// what was refused, by code. The table is printed as soon as the engine returns, because the engine
// leaves a goroutine behind that ends the process after its shutdown_timeout.
package local
