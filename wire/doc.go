// Package wire carries one HTTP request and its reply between this program's clients and a cloud, and
// says honestly what became of it.
//
// # What a caller may rely on
//
// Do returns a [Reply] for every answer with a status line, whatever the status. Redirects are answers
// like any other and are never followed: what they carry is signed for one host. Everything else is a
// transient [*classify.Error] whose cause is an [*Error], which keeps two failures apart: the request
// never left in full ("not_sent", the service cannot have acted on it) and the outcome is unknown
// ("no_reply", the service may have acted on it).
//
// # Time
//
// [Options.Timeout] is used three times: for a connection to come about, for the reply (counted from
// the moment the last byte of the request left), and as a limit on a stall while the request is being
// written. A big body on a slow link is no timeout as long as it moves. On Linux "left" means that the
// peer's kernel has acknowledged it, so what waits in the local send buffer counts as being written.
//
// # Connections
//
// Connections are kept alive and shared, HTTP/2 where the server offers it over TLS. Idle ones are
// dropped before servers usually do it. When a request dies on a reused connection before any byte of
// a reply, the connection was most probably stale: the request is sent once more, at once, on a fresh
// one. That is the only resend here; it carries the same bytes and the same signature.
//
// # Concurrency
//
// All methods may be called from any goroutine. Do does not keep or touch Request.Body after it
// returned, not even when it was cancelled, so bodies may be pooled. After Close no goroutine of the
// client is left.
//
// # Tests
//
// [Options.Dial] serves a client inside a synctest bubble over net.Pipe.
package wire
