package docs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"

	_ "github.com/ankusa-connect/ankusa-connect/components"
)

const configurationPage = "docs/configuration.md"

// The field tables are generated: what they say of a field is what the binary says of it.
func TestFieldTablesAreThoseOfTheSpec(t *testing.T) {
	// The engine looks up specifications in the global environment only.
	env := service.GlobalEnvironment()
	page := readFile(t, configurationPage)
	want := page
	for _, name := range []string{"ankusa_sqs", "ankusa_pubsub"} {
		view, ok := env.GetOutputConfig(name)
		if !ok {
			t.Fatalf("%s is not registered", name)
		}
		data, err := view.TemplateData()
		if err != nil {
			t.Fatal(err)
		}
		begin, end := fmt.Sprintf("<!-- generated: fields of %s -->\n", name), fmt.Sprintf("<!-- end of %s -->\n", name)
		head, rest, ok := strings.Cut(want, begin)
		_, tail, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("%s has no section between %q and %q", configurationPage, begin, end)
		}
		want = head + begin + "\n" + fieldTable(data.Fields, required(t, view)) + "\n" + end + tail
	}
	if want == page {
		return
	}
	if *update {
		if err := os.WriteFile(filepath.Join(root, configurationPage), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s is out of date with the specification: run go test ./docs -run %s -update", configurationPage, t.Name())
}

// required names the fields that have to be set.
func required(t *testing.T, view *service.ConfigView) map[string]bool {
	t.Helper()
	b, err := view.FormatJSON()
	if err != nil {
		t.Fatal(err)
	}
	var spec struct {
		Config struct {
			Children []struct {
				Name     string `json:"name"`
				Optional bool   `json:"is_optional"`
				Kind     string `json:"kind"`
				Default  any    `json:"default"`
				Children []any  `json:"children"`
			} `json:"children"`
		} `json:"config"`
	}
	if err := json.Unmarshal(b, &spec); err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, f := range spec.Config.Children {
		if !f.Optional && f.Default == nil && len(f.Children) == 0 {
			out[f.Name] = true
		}
	}
	return out
}

// ofBenthos are the fields whose description is the engine's, and what stands here in its place.
var ofBenthos = map[string]string{
	"tls":      "The engine's own TLS settings: `enabled`, `root_cas_file`, `client_certs`, `skip_cert_verify` and others.",
	"batching": "The engine's own [batch policy](https://docs.redpanda.com/connect/configuration/batching/): `count`, `byte_size`, `period`, `check`, `processors`. Leave it out: see \"Where order matters\" and \"Two layers of batching\".",
}

// fieldTable writes the fields as a table. The engine's own fields are one row each.
func fieldTable(fields []service.TemplateDataPluginField, required map[string]bool) string {
	var b strings.Builder
	b.WriteString("| field | type | default | meaning |\n|---|---|---|---|\n")
	inside := ""
	for _, f := range fields {
		if inside != "" && strings.HasPrefix(f.FullName, inside) {
			continue
		}
		inside = ""
		name, kind, fallback := "`"+f.FullName+"`", f.Type, defaultText(f.DefaultMarshalled)
		text := oneLine(f.Description)
		switch own, ok := ofBenthos[f.FullName]; {
		case ok:
			inside, fallback, text = f.FullName+".", "", own
		case required[f.FullName]:
			fallback = "required"
		case f.Type == "object":
			fallback = ""
		}
		if f.IsSecret {
			text += " A secret: set it from the environment."
		}
		if f.IsInterpolated && !strings.Contains(text, "upports interpolation") {
			text += " Supports interpolation."
		}
		for i, o := range f.AnnotatedOptions {
			if i == 0 {
				text += " One of:"
			}
			text += fmt.Sprintf(" `%s` – %s", o[0], o[1])
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, kind, fallback, strings.ReplaceAll(text, "|", "\\|"))
	}
	return b.String()
}

func defaultText(marshalled string) string {
	switch marshalled {
	case "", "null", `""`:
		return ""
	default:
		return "`" + strings.Trim(marshalled, `"`) + "`"
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
