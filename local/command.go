package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/urfave/cli/v2"

	"github.com/ankusa-connect/ankusa-connect/output"
)

// Register adds an output to an environment, bound by the options.
type Register func(env *service.Environment, opts ...output.Option) error

// Command is the command `local`. common are the options that every run of this binary has (name,
// version, …); registers are the outputs that are bound to the local clouds.
func Command(common []service.CLIOptFunc, registers ...Register) *cli.Command {
	return &cli.Command{
		Name:  "local",
		Usage: "Run a pipeline against an SQS and a Pub/Sub on this machine and show what arrived",
		Subcommands: []*cli.Command{{
			Name:      "run",
			Usage:     "Run a pipeline unchanged, with both outputs bound to this machine",
			ArgsUsage: "[--dump FILE] [flags of run] pipeline.yaml",
			Description: strings.TrimSpace(`
Both outputs write to an in-memory SQS and Pub/Sub on 127.0.0.1, whatever the pipeline or the
environment say: no hook can reach a real cloud through them. Queues and topics come into being on
first use. Inputs and all other components stay real: what is read is acked.

All flags of "run" pass through. --dump FILE also writes every message that arrived to FILE, one JSON
object per line.`),
			// The flags are those of run, which parses them itself.
			SkipFlagParsing: true,
			Action: func(c *cli.Context) error {
				args, dumpPath, err := ownFlags(c.Args().Slice())
				if err != nil {
					return err
				}
				if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
					return cli.ShowSubcommandHelp(c)
				}
				code, err := run(c.Context, common, registers, args, dumpPath, os.Stdout, os.Stderr)
				if err != nil {
					return err
				}
				if code != 0 {
					return cli.Exit("", code)
				}
				return nil
			},
		}},
	}
}

// ownFlags takes --dump out of the arguments; the rest is run's.
func ownFlags(args []string) (rest []string, dumpPath string, err error) {
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--dump":
			if i+1 == len(args) {
				return nil, "", errors.New("--dump needs a file")
			}
			i++
			dumpPath = args[i]
		case strings.HasPrefix(args[i], "--dump="):
			dumpPath = strings.TrimPrefix(args[i], "--dump=")
		default:
			rest = append(rest, args[i])
		}
	}
	return rest, dumpPath, nil
}

// run runs the engine with args against local clouds and reports.
func run(ctx context.Context, common []service.CLIOptFunc, registers []Register, args []string, dumpPath string, stdout, stderr io.Writer) (code int, err error) {
	c, err := start()
	if err != nil {
		return 1, err
	}
	defer c.close()
	env := service.NewEnvironment()
	for _, register := range registers {
		if err := register(env, c.option()); err != nil {
			return 1, err
		}
	}
	fmt.Fprintf(stderr, "local: SQS on %s, Pub/Sub on %s. No hook leaves this machine through ankusa_sqs or ankusa_pubsub; inputs are real and acked.\n",
		c.sqsServer.URL(), c.pubsubServer.URL())

	progressCtx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { c.progress(progressCtx, stderr) }) // ends with stop
	code, err = service.RunCLIToCode(ctx, append(append([]service.CLIOptFunc{}, common...),
		service.CLIOptSetEnvironment(env),
		service.CLIOptSetArgs(append([]string{os.Args[0], "run"}, args...)...),
	)...)
	stop()
	wg.Wait()
	if err != nil {
		return code, err
	}
	arrivals := c.arrived()
	for _, a := range arrivals {
		a.check(context.WithoutCancel(ctx), c.claims)
	}
	printTable(stdout, arrivals, c.refusedLocally())
	if dumpPath != "" {
		if err := dump(dumpPath, arrivals); err != nil {
			return 1, err
		}
	}
	for _, a := range arrivals {
		if a.claimsBroken > 0 {
			return 1, nil
		}
	}
	return code, nil
}
