package docs_test

import (
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ankusa-connect/ankusa-connect/message"
)

// Every YAML block is a whole configuration, and the linter has nothing to say of it. Where the input
// is of another build, stdin stands in for it.
func TestYAMLBlocksAreLinted(t *testing.T) {
	dir := workDir(t)
	all := blocks(t, "yaml")
	if len(all) < 6 {
		t.Fatalf("found %d blocks", len(all))
	}
	for i, b := range all {
		text := b.text
		if b.marked("other-inputs") {
			text = withInput(t, b, map[string]any{"stdin": map[string]any{}})
		}
		name := fmt.Sprintf("block-%d.yaml", i)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if r := command(t, dir, nil, "ankusa-connect lint "+name); r.code != 0 {
			t.Errorf("%s:\n%s%s", b, r.stdout, r.stderr)
		}
	}
}

// A block that shows a file of the repository shows it as it is.
func TestBlocksShowTheFilesTheyName(t *testing.T) {
	n := 0
	for _, b := range blocks(t, "yaml") {
		if len(b.marks) == 2 && b.marks[0] == "file" {
			n++
			if want := readFile(t, b.marks[1]); b.text != want {
				t.Errorf("%s is not %s", b, b.marks[1])
			}
		}
	}
	if n == 0 {
		t.Error("no block names a file")
	}
}

// The message that message-format.md shows is one, and is what our encoder makes of its fields.
func TestTheMessageShownIsOne(t *testing.T) {
	shown := blocks(t, "json")
	if len(shown) != 1 {
		t.Fatalf("%d JSON blocks, want 1", len(shown))
	}
	raw := strings.TrimSuffix(shown[0].text, "\n")
	if _, err := message.Decode([]byte(raw)); err != nil {
		t.Fatal(err)
	}
	h := message.Hook{
		ID: "01a0", SourceID: "stripe", TenantID: "acme", ReceivedAt: 1737500000000, ContentType: "application/json",
		DedupeKey: "evt_1", Headers: map[string]string{"x-github-event": "push"}, Body: []byte("hello"),
	}
	if got := string(h.AppendTo(nil)); got != raw {
		t.Errorf("the encoder writes\n%s\nand the page shows\n%s", got, raw)
	}
}

// Links between pages, and to files, lead somewhere.
func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(readFile(t, page), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			}
		}
	}
}

// Go blocks are sound as far as that shows without the modules they import.
func TestGoBlocksParse(t *testing.T) {
	for _, b := range blocks(t, "go") {
		if _, err := parser.ParseFile(token.NewFileSet(), b.String(), b.text, parser.AllErrors); err != nil {
			t.Error(err)
		}
		if formatted, err := format.Source([]byte(b.text)); err != nil || string(formatted) != b.text {
			t.Errorf("%s is not as gofmt writes it (%v)", b, err)
		}
	}
}
