// Package message writes and reads Ankusa messages: the one JSON form in which every Ankusa producer
// hands a webhook to a queue. docs/message-format.md has the format and its rules.
//
// # Writing
//
// A [Hook] is written by [Hook.AppendTo]. The same hook always gives the same bytes: keys have a fixed
// order, headers are sorted, nothing insignificant is written, and no string has two spellings. The
// bytes consist only of characters that SQS takes, whatever the hook's text holds. A body may be any
// bytes and is never altered; text that is not UTF-8 is refused by [Hook.Validate], never replaced, so
// U+FFFD appears in a message only where the hook itself has it.
//
// AppendTo goes over the hook once and appends to the caller's buffer. Into a buffer with room for
// [Hook.Size] bytes it allocates nothing (up to 64 headers). The body is read twice, once for its
// digest, which stands before it, and once into base64; it is not copied anywhere else.
//
// # Reading
//
// [Decode] checks a message that somebody else encoded and finds what a sender needs of it. Its rules
// have an order, and the first that fails decides the error. Where the rules leave room, because JSON
// readers of different languages disagree, Decode leans to the strict side: a message that is passed on
// must mean the same to every consumer.
//
//   - Integers are digits with an optional minus: 1.0 and 1e0 are no integers to a reader with types
//     (Go's among them), so "v":1.0 is unsupported_version; -0, which some readers take for a float, is
//     none, and neither is an integer outside 64 bits.
//   - An escape of half a surrogate pair ("\ud800") is invalid_json wherever it stands, in a key or in a
//     field that nobody reads too: it is no character, some readers refuse the whole message, and
//     others, Go's among them, read U+FFFD, which is not in it.
//   - Base64 has its padding, no white space and, as RFC 4648 section 3.5 demands of encoders, zero
//     bits after the last byte.
//   - Keys are compared exactly, not in Go's case-insensitive way; an escaped key is the key that it
//     spells. Of a repeated key the last counts. Unknown keys are ignored.
//   - A byte order mark is not JSON. Nesting ends at 10,000 levels, as in encoding/json.
//   - A field that is null counts as absent, body_base64 and claim included.
//
// A decoded message is passed on as [Decoded.Raw], byte for byte as it came. Decode allocates for the
// short fields only: the body is checked in small pieces and is not kept, and neither nesting nor
// length of the input makes it recurse or grow.
//
// # Errors
//
// Every error is a [classify.Error] of class permanent and service "message", because no later try
// changes a message. Code is one of this package's Code constants. The text of invalid_field begins
// with the field's name. An error may hold a field's or header's name, a number, a length or the
// tenants of a claim and its hook; never a body, a header's value or any other text of the message.
//
// # Concurrency
//
// The package keeps no state that shows. A Hook or Decoded that nobody changes may be used from any
// goroutine, and so may a [ForwardRule].
package message
