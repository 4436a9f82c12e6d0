package doctor

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/redpanda-data/benthos/v4/public/service"
	"gopkg.in/yaml.v3"

	"github.com/ankusa-connect/ankusa-connect/config"
)

// The names of our outputs.
const (
	nameSQS    = "ankusa_sqs"
	namePubSub = "ankusa_pubsub"
)

// The specs of our outputs. Making one compiles all its lint rules.
var (
	specSQS    = sync.OnceValue(config.SQSSpec)
	specPubSub = sync.OnceValue(config.PubSubSpec)
)

// component is one component of the pipeline as it stands in the file, after interpolation of the
// environment.
type component struct {
	kind  string // "output", "cache", …
	name  string // "fallback", "ankusa_sqs", …
	path  string // "output.fallback.0"
	label string
	line  int    // in the main file; 0 when not known
	yaml  string // of ours: what stands under the name. It holds secrets
	conf  any    // the same, parsed
}

// pipeline is what a file and its resources say.
type pipeline struct {
	components []*component // in the order of the file, parents first
	ours       []*component // of those, the outputs of this program
	threads    int
	processors int
	lints      []lint
	files      [][]byte // as read, the main file first
}

// lint is one remark of the linter. `run` refuses to start on any.
type lint struct{ file, text string }

// errNotBuilt is what an attempt to build one of our outputs here would meet. There is none: the
// outputs are registered so that the file can be read.
var errNotBuilt = errors.New("doctor builds no output")

// environment returns the global one with our two outputs as specs describe them and nothing behind.
func environment(sqs, pubsub *service.ConfigSpec) (*service.Environment, error) {
	env := service.NewEnvironment()
	for name, spec := range map[string]*service.ConfigSpec{nameSQS: sqs, namePubSub: pubsub} {
		err := env.RegisterBatchOutput(name, spec, func(*service.ParsedConfig, *service.Resources) (service.BatchOutput, service.BatchPolicy, int, error) {
			return nil, service.BatchPolicy{}, 0, errNotBuilt
		})
		if err != nil {
			return nil, err
		}
	}
	return env, nil
}

// readPipeline reads the files as `run` does. Errors are of files that are none: what can be read but
// not run is a lint.
func readPipeline(file string, resources []string) (*pipeline, error) {
	p := &pipeline{}
	strict, err := environment(specSQS(), specPubSub())
	if err != nil {
		return nil, err
	}
	// The engine blanks fields that a spec calls secret when it is asked for the parts of a stream, and
	// credentials are what is to be checked. To a spec without fields nothing is secret.
	bare := func() *service.ConfigSpec { return service.NewConfigSpec().Field(service.NewAnyField("")) }
	open, err := environment(bare(), bare())
	if err != nil {
		return nil, err
	}
	builder := open.NewStreamBuilder()
	builder.DisableLinting() // it is done below, with the real specs
	schema := strict.FullConfigSchema("", "")
	for i, name := range append([]string{file}, resources...) {
		contents, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, contents)
		if i == 0 {
			err = builder.SetYAML(string(contents))
		} else {
			err = builder.AddResourcesYAML(string(contents))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		lints, err := schema.NewStreamConfigLinter().LintYAML(contents)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, l := range lints {
			p.lints = append(p.lints, lint{name, l.Error()})
		}
	}
	if err := p.walk(builder); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	p.addLines(schema)
	return p, p.readThreads(builder)
}

// walk lists the components.
func (p *pipeline) walk(builder *service.StreamBuilder) error {
	return builder.WalkComponents(func(w *service.WalkedComponent) error {
		c := &component{kind: w.ComponentType, name: w.Name, path: w.Path, label: w.Label}
		p.components = append(p.components, c)
		// Nodes, not values: 0123 must stay what it is until somebody knows whether it is a number.
		var fields map[string]yaml.Node
		if err := yaml.Unmarshal([]byte(w.ConfigYAML()), &fields); err != nil {
			return err
		}
		node := fields[c.name]
		if err := node.Decode(&c.conf); err != nil {
			return err
		}
		if c.kind == "output" && (c.name == nameSQS || c.name == namePubSub) {
			text, err := yaml.Marshal(&node)
			if err != nil {
				return err
			}
			c.yaml = string(text)
			p.ours = append(p.ours, c)
		}
		return nil
	})
}

// addLines finds where the components stand. The engine forgets it on the way, and a file may be no
// YAML before its variables are replaced; then the report goes without.
func (p *pipeline) addLines(schema *service.ConfigSchema) {
	lines := map[string]int{}
	_ = schema.NewStreamConfigWalker().WalkComponentsYAML(p.files[0], func(w *service.WalkedComponent) error {
		lines[w.Path] = w.LineStart
		return nil
	})
	for _, c := range p.components {
		c.line = lines[c.path]
	}
}

func (p *pipeline) readThreads(builder *service.StreamBuilder) error {
	text, err := builder.AsYAML()
	if err != nil {
		return err
	}
	var stream struct {
		Pipeline struct {
			Threads    int   `yaml:"threads"`
			Processors []any `yaml:"processors"`
		} `yaml:"pipeline"`
	}
	if err := yaml.Unmarshal([]byte(text), &stream); err != nil {
		return err
	}
	p.threads, p.processors = stream.Pipeline.Threads, len(stream.Pipeline.Processors)
	return nil
}

// at returns the component with that path; nil when there is none.
func (p *pipeline) at(path string) *component {
	for _, c := range p.components {
		if c.path == path {
			return c
		}
	}
	return nil
}

// outputResource returns the output resource with that label; nil when there is none.
func (p *pipeline) outputResource(label string) *component {
	for _, c := range p.components {
		if c.label == label && c.kind == "output" && strings.HasPrefix(c.path, "output_resources.") {
			return c
		}
	}
	return nil
}
