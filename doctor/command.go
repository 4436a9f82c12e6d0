package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/urfave/cli/v2"
)

// DefaultTimeout is the --timeout of a command line that names none: longer than a look-up of AWS
// credentials takes on a machine that has none, whose metadata service is asked in vain.
const DefaultTimeout = 10 * time.Second

// Command is the command `doctor`.
func Command() *cli.Command {
	return &cli.Command{
		Name:      "doctor",
		Usage:     "Check what a pipeline's ankusa_sqs and ankusa_pubsub outputs need, without sending a message",
		ArgsUsage: "[--timeout 10s] [-r FILE] [-e FILE] pipeline.yaml",
		Description: strings.TrimSpace(`
Checks, for each of these outputs in the file: the credentials and where they were found, region,
endpoint, clock, whether the queue or topic is there and permitted and what it takes, what would
reorder or lose messages on the way, and whether the claim store can be written.

One line each: ok, warning, failure or skipped (could not be checked), with the way to mend it. The
exit status is 1 if there is a failure. No message is sent; a probe is written to the claim store and
removed again.`),
		Flags: []cli.Flag{
			&cli.DurationFlag{Name: "timeout", Value: DefaultTimeout, Usage: "how long each look-up and each request may take"},
			&cli.StringSliceFlag{Name: "resources", Aliases: []string{"r"}, Usage: "pull in extra resources from a file, as run does; supports glob patterns (requires quotes)"},
			&cli.StringSliceFlag{Name: "env-file", Aliases: []string{"e"}, Usage: "import environment variables from a dotenv file, as run does; supports glob patterns (requires quotes)"},
		},
		Action: func(c *cli.Context) error {
			switch {
			case c.NArg() == 0:
				return errors.New("doctor needs the file of a pipeline: ankusa-connect doctor pipeline.yaml")
			case c.NArg() > 1:
				return errors.New("doctor takes one file, and flags stand before it")
			case c.Duration("timeout") <= 0:
				return errors.New("--timeout must be more than 0")
			}
			envFiles, err := globs(c.StringSlice("env-file"))
			if err != nil {
				return err
			}
			if err := importEnvironment(envFiles); err != nil {
				return err
			}
			resources, err := globs(c.StringSlice("resources"))
			if err != nil {
				return err
			}
			healthy, err := run(c.Context, options{
				file: c.Args().First(), resources: resources, timeout: c.Duration("timeout"),
				getenv: os.Getenv, now: time.Now,
			}, c.App.Writer)
			if err != nil {
				return err
			}
			if !healthy {
				return cli.Exit("", 1)
			}
			return nil
		},
	}
}

// globs resolves patterns to files. A pattern that matches nothing is a mistake.
func globs(patterns []string) ([]string, error) {
	var files []string
	for _, pattern := range patterns {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", pattern, err)
		}
		if len(matches) == 0 {
			return nil, fmt.Errorf("%s: no such file", pattern)
		}
		files = append(files, matches...)
	}
	return files, nil
}

func importEnvironment(files []string) error {
	for _, file := range files {
		contents, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		variables, err := service.ParseEnvFile(contents)
		if err != nil {
			// The error may quote the file, and such files hold secrets.
			return fmt.Errorf("%s is no file of environment variables", file)
		}
		for name, value := range variables {
			if err := os.Setenv(name, value); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return nil
}

// options are the command line's, and what tests replace.
type options struct {
	file      string
	resources []string      // files of further resources
	timeout   time.Duration // of each look-up and each request
	getenv    func(string) string
	now       func() time.Time
	dial      func(ctx context.Context, network, addr string) (net.Conn, error) // nil is TCP
}

// run checks the pipeline and prints the report. healthy is false if there is a failure; an error
// means that there was nothing to check.
func run(ctx context.Context, o options, w io.Writer) (healthy bool, err error) {
	hide := &redactor{}
	hide.addEnvironment(o.getenv)
	p, err := readPipeline(o.file, o.resources)
	if err != nil {
		return false, errors.New(oneLine(hide.clean(err.Error())))
	}
	for _, out := range p.ours {
		hide.addFields(out.conf)
	}
	d := &doctor{options: o, pipeline: p, report: &report{w: w, hide: hide}}
	if len(p.ours) == 0 {
		return false, fmt.Errorf("%s has no ankusa_sqs or ankusa_pubsub output, so there is nothing to check", o.file)
	}
	d.checkFile()
	for _, out := range p.ours {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		d.checkOutput(ctx, out)
	}
	d.report.summary()
	return d.report.counts[failure] == 0, nil
}
