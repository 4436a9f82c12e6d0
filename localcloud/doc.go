// Package localcloud holds what the strict in-memory clouds under it share: a listener that
// refuses anything but loopback, serving over a socket or over net.Pipe, scripted faults, and a
// gauge of what is in flight. The clouds themselves are localcloud/localsqs and
// localcloud/localpubsub; the test suites use them as doubles and `ankusa-connect local` runs them.
//
// # What the clouds promise
//
// They refuse what the service refuses, with the service's code, and count what it counts. They
// import nothing of this module's clients: a fake that shares the client's encoder agrees with the
// client's mistakes. Each action's file lists what it supports, simplifies and omits.
//
// # Faults
//
// A [Fault] says when it strikes (action, ordinal, every nth, chance, a condition on the request)
// and what it does: an error reply, a reply that is not the API talking, a cut connection, a reply
// lost after the request was carried out, a stall, single entries refused or misreported. Faults
// are added to a [Faults], which reports what has fired and what is still armed.
//
// # Time
//
// Waiting is done on timers that end with the request's context, so everything here works in a
// testing/synctest bubble as long as it is served over a [PipeListener]: sockets stop the bubble's
// clock. A cloud's own clock is an option; without one it is time.Now, which a bubble also fakes.
//
// # Concurrency
//
// Everything exported may be used from any goroutine, except Gauge, which its owner locks.
package localcloud
