// Package components registers ankusa_sqs and ankusa_pubsub in the global environment. A custom build
// of Redpanda Connect, or of anything on Benthos, gets both outputs by importing it for its effect:
//
//	import _ "github.com/ankusa-connect/ankusa-connect/components"
package components

import (
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/ankusa-connect/ankusa-connect/output"
)

func init() {
	for _, register := range []func(*service.Environment, ...output.Option) error{output.RegisterSQS, output.RegisterPubSub} {
		if err := register(service.GlobalEnvironment()); err != nil {
			panic(err) // the specification itself is wrong, which no configuration can cause
		}
	}
}
