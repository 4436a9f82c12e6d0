package main

import (
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/ankusa-connect/ankusa-connect/output"
)

// registerPubSub adds ankusa_pubsub to this binary.
func registerPubSub(env *service.Environment, opts ...output.Option) error {
	return output.RegisterPubSub(env, opts...)
}
