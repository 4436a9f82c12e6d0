package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/ankusa-connect/ankusa-connect/localcloud/localsqs"
)

// lines keeps every write.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, string(p))
	return len(p), nil
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.text)
}

// command runs `ankusa-connect doctor args…` and returns what it printed and its exit status.
func command(t *testing.T, args ...string) (text string, code int, err error) {
	t.Helper()
	out := &lines{}
	app := &cli.App{
		Writer: out, ErrWriter: out, Commands: []*cli.Command{Command()},
		ExitErrHandler: func(*cli.Context, error) {}, // the original ends the process
	}
	err = app.RunContext(t.Context(), append([]string{"ankusa-connect", "doctor"}, args...))
	if exit, ok := errors.AsType[cli.ExitCoder](err); ok {
		return strings.Join(out.all(), ""), exit.ExitCode(), nil
	}
	return strings.Join(out.all(), ""), 0, err
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestExitStatus(t *testing.T) {
	c := newClinic(t)
	c.sqs.CreateQueue("hooks", nil)
	healthy := write(t, "healthy.yaml", around(c.sqsOutput("hooks")))
	warned := write(t, "warned.yaml", "output:\n"+indent(c.sqsOutput("hooks"), "  "))
	ill := write(t, "ill.yaml", around(c.sqsOutput("nothing-here")))
	for file, want := range map[string]int{healthy: 0, warned: 0, ill: 1} {
		text, code, err := command(t, "--timeout", "5s", file)
		if err != nil || code != want {
			t.Errorf("%s: status %d, %v, want %d:\n%s", filepath.Base(file), code, err, want, text)
		}
	}
}

func TestWhatCannotBeChecked(t *testing.T) {
	clean(t)
	good := write(t, "good.yaml", "output: { ankusa_sqs: { queue_url: x } }")
	for _, s := range []struct {
		name string
		args []string
		want string
	}{
		{"no file", nil, "needs the file"},
		{"two files", []string{good, good}, "takes one file"},
		{"no time", []string{"--timeout", "0s", good}, "--timeout"},
		{"a file that is missing", []string{"/nowhere/x.yaml"}, "no such file"},
		{"resources that are missing", []string{"-r", "/nowhere/*.yaml", good}, "no such file"},
		{"no YAML", []string{write(t, "a.yaml", "output: [")}, "yaml"},
		{"an unknown component", []string{write(t, "a.yaml", "output: { nonesuch: {} }")}, "nonesuch"},
		{"none of our outputs", []string{write(t, "a.yaml", "output: { drop: {} }")}, "nothing to check"},
		{"an env file that is none", []string{"-e", write(t, "env", "what is this"), good}, "no file of environment variables"},
	} {
		t.Run(s.name, func(t *testing.T) {
			if text, _, err := command(t, s.args...); err == nil || !strings.Contains(err.Error(), s.want) {
				t.Errorf("err = %v, want one that holds %q; printed:\n%s", err, s.want, text)
			}
		})
	}
}

// run reads variables and resources from files, and so must what stands in for it.
func TestResourceAndEnvironmentFiles(t *testing.T) {
	c := newClinic(t)
	c.sqs.CreateQueue("hooks", nil)
	t.Setenv("DOCTOR_TEST_QUEUE", "") // put back what the file sets
	env := write(t, ".env", "DOCTOR_TEST_QUEUE="+localsqs.QueueURL(c.sqsURL, "hooks")+"\n")
	resources := write(t, "resources.yaml", "output_resources:\n  - label: hooks\n"+
		indent(strings.TrimSpace(c.sqsOutput("hooks", "queue_url: ${DOCTOR_TEST_QUEUE}", "claim_check: { store: cache:claims }")), "    ")+
		"\ncache_resources:\n  - label: claims\n    memory: {}\n")
	file := write(t, "pipeline.yaml", around("resource: hooks"))
	text, code, err := command(t, "-e", env, "-r", resources, file)
	if err != nil || code != 0 {
		t.Fatalf("status %d, %v:\n%s", code, err, text)
	}
	(&diagnosis{t: t, text: text}).has("ok queue: /hooks is there", "ok fallback: the switch at output.fallback.1", "ok store: cache:claims can be written")
}

func TestMissingVariableIsALint(t *testing.T) {
	c := newClinic(t)
	c.sqs.CreateQueue("hooks", nil)
	c.examine(around(c.sqsOutput("hooks", "message_group_id: ${DOCTOR_TEST_MISSING}"))).wants("failure lint: DOCTOR_TEST_MISSING", "ok queue: is there")
}

// A file may be no YAML before its variables are replaced. It is checked all the same, without lines.
func TestVariableThatHoldsStructure(t *testing.T) {
	c := newClinic(t)
	c.sqs.CreateQueue("hooks", nil)
	t.Setenv("DOCTOR_TEST_BATCH", "{ linger: 5ms }")
	d := c.examine(around(c.sqsOutput("hooks", "batch: ${DOCTOR_TEST_BATCH}", `attributes: { note: ${X:"a: b"} }`)))
	d.wants("ok queue: is there")
}

func TestEndOfContextEndsTheReport(t *testing.T) {
	c := newClinic(t)
	c.sqs.CreateQueue("hooks", nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := write(t, "pipeline.yaml", around(c.sqsOutput("hooks")))
	if _, err := run(ctx, options{file: file, timeout: DefaultTimeout, getenv: os.Getenv, now: c.now}, &lines{}); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want the context's", err)
	}
}

// 0123 is a text where a text is wanted, as run takes it.
func TestNumbersStayAsWritten(t *testing.T) {
	file := write(t, "pipeline.yaml", "output: { ankusa_sqs: { queue_url: x, credentials: { id: 0123, secret: 1e3 } } }")
	p, err := readPipeline(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text := p.ours[0].yaml; !strings.Contains(text, "0123") || !strings.Contains(text, "1e3") {
		t.Errorf("got %s", text)
	}
}
