package main

import (
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/ankusa-connect/ankusa-connect/output"
)

// registerSQS adds ankusa_sqs to this binary.
func registerSQS(env *service.Environment, opts ...output.Option) error {
	return output.RegisterSQS(env, opts...)
}
