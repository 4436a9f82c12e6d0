// Package config describes the fields of both outputs to Benthos, lints them, and parses them into
// plain structs.
//
// # Lint and start
//
// Whatever can be known before the first message is a lint rule, so that `ankusa-connect lint` reports
// it with a line number. Rules are pure Bloblang: they see values as they stand in the file, so they
// let pass what is empty or holds an unresolved `${…}`, and the parse functions here refuse the same
// things at start, when everything is known. Field names follow the host's own outputs where the
// meaning is the same.
//
// # What this package does not do
//
// It reads no environment, dials nothing and looks up no credential: a parsed config says what the
// file says. Defaults that depend on the environment (region, endpoint, project) are resolved by the
// outputs.
package config
