// Package jsonstring writes JSON strings: the one escaper of the message, the wire clients' requests and
// the manifest of a pack.
//
// # Spelling
//
// Only what JSON demands is escaped (RFC 8259, section 7): the quote, the backslash and U+0000 to U+001F,
// each in its shortest form, hexadecimal in lower case. So a string has one spelling, which no encoder's
// taste changes: encoding/json also escapes <, >, & and U+2028, for the sake of HTML, and our bytes are
// pinned by golden files.
//
// # Input
//
// A string or bytes, UTF-8, which the caller has checked: what is not UTF-8 is copied as it is. Escapes
// do not look beyond their own byte, so the pieces of a string may be appended one by one.
//
// # Cost
//
// Nothing is allocated but dst where it has to grow, and what Len returns is exactly what Append appends.
// Nothing is kept; all functions may be called from any goroutine.
package jsonstring
