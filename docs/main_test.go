// Package docs_test keeps the documentation true: every YAML block is linted, every example and every
// command is run, and the field tables are those of the real configuration.
package docs_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the generated tables of docs/configuration.md")

var (
	root   string // of the repository
	binary string // ankusa-connect, built once
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if root, err = filepath.Abs(".."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dir, err := os.MkdirTemp("", "ankusa-connect-docs-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "ankusa-connect")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// workDir makes an empty directory with the examples in it, as a reader of the docs has them, so that
// what a run writes stays out of the repository.
func workDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(root, "examples"), filepath.Join(dir, "examples")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// environment is what a command sees: little of ours, and nothing that leads to a real cloud.
func environment(dir string, more ...string) []string {
	return append([]string{
		"PATH=" + filepath.Dir(binary) + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME=" + dir,
		"TMPDIR=" + os.TempDir(),
		"AWS_EC2_METADATA_DISABLED=true",
	}, more...)
}

// result is how a command ended.
type result struct {
	stdout, stderr string
	code           int
}

// command runs a shell command in dir.
func command(t *testing.T, dir string, env []string, line string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, environment(dir, env...), 5*time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil || (err != nil && cmd.ProcessState == nil) {
		t.Fatalf("%s: %v\n%s", line, err, stderr.String())
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// mustRun runs a command that has to succeed.
func mustRun(t *testing.T, dir string, env []string, line string) result {
	t.Helper()
	r := command(t, dir, env, line)
	if r.code != 0 {
		t.Fatalf("%s: exit status %d\n%s%s", line, r.code, r.stdout, r.stderr)
	}
	return r
}

// readFile reads a file of the repository.
func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// pages are the Markdown files that users read, relative to the root.
func pages(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(paths) < 10 {
		t.Fatalf("docs: %d pages, %v", len(paths), err)
	}
	for i, p := range paths {
		paths[i] = "docs/" + filepath.Base(p)
	}
	return append([]string{"README.md", "CHANGELOG.md"}, paths...)
}

// block is a fenced code block.
type block struct {
	page  string
	line  int
	lang  string
	text  string
	marks []string // words of `<!-- test: … -->` on the line before the fence
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

func (b block) marked(word string) bool { return slices.Contains(b.marks, word) }

// blocks returns the code blocks of all pages in the given languages.
func blocks(t *testing.T, langs ...string) (out []block) {
	t.Helper()
	for _, page := range pages(t) {
		var b *block
		var marks []string
		for i, line := range strings.Split(readFile(t, page), "\n") {
			fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
			switch {
			case isFence && b == nil:
				b = &block{page: page, line: i + 1, lang: strings.TrimSpace(fence), marks: marks}
				if b.lang == "" {
					t.Errorf("%s: a code block without a language", b)
				}
			case isFence:
				if slices.Contains(langs, b.lang) {
					out = append(out, *b)
				}
				b = nil
			case b != nil:
				b.text += line + "\n"
			}
			marks = nil
			if rest, ok := strings.CutPrefix(line, "<!-- test: "); ok {
				marks = strings.Fields(strings.TrimSuffix(rest, "-->"))
			}
		}
		if b != nil {
			t.Errorf("%s: the code block has no end", b)
		}
	}
	return out
}
