// Command ankusa-connect is Benthos with the outputs ankusa_sqs and ankusa_pubsub: it takes webhooks
// from any Benthos input and publishes each as one Ankusa message in Amazon SQS or Google Cloud
// Pub/Sub.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/redpanda-data/benthos/v4/public/service"

	_ "github.com/redpanda-data/benthos/v4/public/components/io"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"

	"github.com/ankusa-connect/ankusa-connect/doctor"
	"github.com/ankusa-connect/ankusa-connect/local"
	"github.com/ankusa-connect/ankusa-connect/prometheus"
)

func main() {
	code, err := run(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func run(ctx context.Context) (int, error) {
	env := service.GlobalEnvironment()
	if err := registerSQS(env); err != nil {
		return 1, err
	}
	if err := registerPubSub(env); err != nil {
		return 1, err
	}
	if err := prometheus.Register(env); err != nil {
		return 1, err
	}
	common := []service.CLIOptFunc{
		service.CLIOptSetVersion(version()),
		service.CLIOptSetBinaryName("ankusa-connect"),
		service.CLIOptSetProductName("ankusa-connect"),
		service.CLIOptSetDocumentationURL("https://github.com/ankusa-connect/ankusa-connect/tree/main/docs"),
	}
	return service.RunCLIToCode(ctx, append(common,
		service.CLIOptAddCommand(local.Command(common, registerSQS, registerPubSub)),
		service.CLIOptAddCommand(doctor.Command()),
	)...)
}
