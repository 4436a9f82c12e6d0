package docs_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ankusa-connect/ankusa-connect/internal/peers"
	"github.com/ankusa-connect/ankusa-connect/localcloud"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localsqs"
)

const testCommand = "go test -race -shuffle=on ./..."

// notRunHere are the commands of the docs that no test can run, and why.
var notRunHere = map[string]string{
	testCommand: "it is what runs this test",
}

// runHere are the commands that a test runs.
var runHere = map[string]func(t *testing.T, line string){
	"go run . local run ./examples/quickstart.yaml": func(t *testing.T, line string) {
		dir := t.TempDir()
		r := command(t, root, goEnv("DEAD_LETTERS="+filepath.Join(dir, "dead-letters.jsonl")), line)
		if r.code != 0 || !strings.Contains(r.stdout, "123456789012/hooks") {
			t.Errorf("exit status %d\n%s%s", r.code, r.stdout, r.stderr)
		}
	},
	// A server and its client: what they print is TestExamples' to judge.
	"go run . local run ./examples/http-to-fifo.yaml":                                       func(t *testing.T, line string) { serveAndPost(t) },
	`curl -H 'X-GitHub-Event: push' -d '{"ref":"main"}' http://127.0.0.1:8080/hooks/github`: func(t *testing.T, line string) { serveAndPost(t) },

	"ankusa-connect doctor ./examples/http-to-fifo.yaml":  doctorOf,
	"ankusa-connect local run ./examples/quickstart.yaml": printsATable,
	"ankusa-connect local run --dump ./arrived.jsonl ./examples/pubsub.yaml": func(t *testing.T, line string) {
		dir := workDir(t)
		mustRun(t, dir, nil, line)
		if got := lines[arrived](t, filepath.Join(dir, "arrived.jsonl")); len(got) != 63 {
			t.Errorf("%d lines", len(got))
		}
		if info, err := os.Stat(filepath.Join(dir, "arrived.jsonl")); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	},
}

// doctorOf examines the example against a local SQS, and the page shows what it prints: all but who is
// asked and with which key.
func doctorOf(t *testing.T, line string) {
	cloud := localsqs.New(localsqs.Options{})
	cloud.CreateQueue("hooks.fifo", map[string]string{"FifoQueue": "true"})
	l, err := localcloud.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := localcloud.Serve(l, cloud)
	defer server.Close()
	r := mustRun(t, workDir(t), []string{
		"AWS_ENDPOINT_URL_SQS=" + server.URL(), "AWS_ACCESS_KEY_ID=" + localsqs.DefaultAccessKeyID,
		"AWS_SECRET_ACCESS_KEY=" + localsqs.DefaultSecretAccessKey,
		"QUEUE_URL=https://sqs.us-east-1.amazonaws.com/" + localsqs.DefaultAccount + "/hooks.fifo",
	}, line)
	own := regexp.MustCompile(`(?m)^  ok +(endpoint|credentials) .*$`)
	bare := func(s string) string {
		return strings.TrimSpace(own.ReplaceAllString(strings.ReplaceAll(s, localsqs.DefaultAccount, "123456789012"), "  $1"))
	}
	shown := ""
	for _, b := range blocks(t, "text") {
		if b.page == "docs/doctor.md" {
			shown = b.text
		}
	}
	if bare(r.stdout) != bare(shown) {
		t.Errorf("the page shows\n%s\nand the command prints\n%s", bare(shown), bare(r.stdout))
	}
}

func printsATable(t *testing.T, line string) {
	if r := mustRun(t, workDir(t), nil, line); !strings.Contains(r.stdout, "What arrived") {
		t.Errorf("no table:\n%s", r.stdout)
	}
}

// goEnv lets a child find Go's caches.
func goEnv(more ...string) []string {
	for _, name := range []string{"HOME", "GOPATH", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "GOTOOLCHAIN"} {
		if v := os.Getenv(name); v != "" {
			more = append(more, name+"="+v)
		}
	}
	return more
}

// serveAndPost runs the README's server, on a port that is free, and its curl against it.
func serveAndPost(t *testing.T) {
	dir, address := workDir(t), "127.0.0.1:"+peers.FreePort(t)
	p := startServer(t, dir, address, "ankusa-connect", "local", "run", "./examples/http-to-fifo.yaml")
	mustRun(t, dir, nil, strings.Replace(`curl -sSf -H 'X-GitHub-Event: push' -d '{"ref":"main"}' http://127.0.0.1:8080/hooks/github`, "127.0.0.1:8080", address, 1))
	p.interrupt(t)
	if columns := row(t, p.stdout.String(), "123456789012/hooks.fifo"); columns[2] != "1" {
		t.Errorf("table: %q", columns)
	}
}

// Every command of the docs is run by a test, or it says here why it is not.
func TestEveryCommandIsRun(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range blocks(t, "sh", "console") {
		for _, line := range commands(b) {
			seen[line] = true
			if _, ok := notRunHere[line]; ok {
				continue
			}
			if _, ok := runHere[line]; !ok {
				t.Errorf("%s: nobody runs %q", b, line)
			}
		}
	}
	for line := range notRunHere {
		if !seen[line] {
			t.Errorf("no page has the command %q any more", line)
		}
	}
	for _, line := range slices.Sorted(maps.Keys(runHere)) {
		if !seen[line] {
			t.Errorf("no page has the command %q any more", line)
			continue
		}
		t.Run(line, func(t *testing.T) { runHere[line](t, line) })
	}
}

// commands are the lines of a block that a shell runs. In a console block they begin with a prompt, and the
// rest is what they print.
func commands(b block) (out []string) {
	for line := range strings.Lines(strings.ReplaceAll(b.text, "\\\n", " ")) {
		line = strings.TrimSpace(line)
		if b.lang == "console" {
			var ok bool
			if line, ok = strings.CutPrefix(line, "$ "); !ok {
				continue
			}
		}
		if line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, strings.Join(strings.Fields(line), " "))
		}
	}
	return out
}

// The gate runs the README's test command, exactly.
func TestTheGateRunsTheREADMEsTestCommand(t *testing.T) {
	if !strings.Contains(readFile(t, "README.md"), "\n"+testCommand+"\n") {
		t.Errorf("the README's test command is not %q", testCommand)
	}
	gate, err := os.ReadFile(filepath.Join(root, ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(gate), testCommand) {
		t.Errorf(".ci/run does not call %q", testCommand)
	}
}
