package output

import (
	"strings"
	"unicode/utf8"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

// field is one configured expression, or the metadata that stands in when it is not configured.
type field struct {
	name     string // as in the configuration, for errors
	expr     *service.InterpolatedString
	static   bool
	value    string   // of a static expression
	metadata []string // keys tried in order when expr is nil
}

func newField(name string, expr *service.InterpolatedString, metadata ...string) field {
	f := field{name: name, expr: expr, metadata: metadata}
	if expr != nil {
		f.value, f.static = expr.Static()
	}
	return f
}

// view resolves fields against the messages of one batch. Expressions may look at the whole batch, and
// the engine's executor for that is made once per expression, not once per message.
type view struct {
	batch service.MessageBatch
	execs map[*service.InterpolatedString]*service.MessageBatchInterpolationExecutor
}

func newView(batch service.MessageBatch) *view { return &view{batch: batch} }

// resolve returns the field's value for message i. An error is permanent and concerns that message
// alone.
func (v *view) resolve(f *field, i int) (string, error) {
	if f.static {
		return f.value, nil
	}
	s, err := v.read(f, i)
	if err != nil {
		return "", err
	}
	// The engine's JSON reader replaces bytes that are not UTF-8, and the replaced text would travel
	// as if the provider had sent it, whether an expression or a mapping before us has read it.
	if strings.ContainsRune(s, utf8.RuneError) {
		if body, err := v.batch[i].AsBytes(); err == nil && !utf8.Valid(body) {
			return "", classify.Permanentf("message", "invalid_field",
				"%s: holds U+FFFD, and the body is not valid UTF-8, so that what stood there cannot be told; set the field from something else", f.name)
		}
	}
	return s, nil
}

// read reads metadata or runs the expression. The text of a failed interpolation leaves out what the
// engine says, because that quotes the message.
func (v *view) read(f *field, i int) (string, error) {
	if f.expr == nil {
		for _, key := range f.metadata {
			if s, ok := v.batch[i].MetaGet(key); ok && s != "" {
				return s, nil
			}
		}
		return "", nil
	}
	exec := v.execs[f.expr]
	if exec == nil {
		if v.execs == nil {
			v.execs = make(map[*service.InterpolatedString]*service.MessageBatchInterpolationExecutor)
		}
		exec = v.batch.InterpolationExecutor(f.expr)
		v.execs[f.expr] = exec
	}
	s, err := exec.TryString(i)
	if err != nil {
		return "", classify.Permanentf("message", "invalid_field",
			"%s: its interpolation failed for this message; make it total, for example with .or(\"\") or .catch(\"\")", f.name)
	}
	return s, nil
}
