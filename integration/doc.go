// Package integration holds the tests of both wire clients against other people's servers, and nothing
// else: our own strict clouds, each independent implementation at hand, and whatever SQS_ENDPOINT and
// PUBSUB_EMULATOR_HOST name. One suite runs against all of them, which is why the clouds of our own may
// be believed. `make integration` runs it.
package integration
