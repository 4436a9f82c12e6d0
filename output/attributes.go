package output

import (
	"github.com/ankusa-connect/ankusa-connect/config"
	"github.com/ankusa-connect/ankusa-connect/message"
)

// extraAttribute is one attribute that the configuration adds to the message's own.
type extraAttribute struct {
	name  string
	value field
}

func newExtraAttributes(attrs []config.Attribute) []extraAttribute {
	out := make([]extraAttribute, len(attrs))
	for i, a := range attrs {
		out[i] = extraAttribute{name: a.Name, value: newField("attributes."+a.Name, a.Value)}
	}
	return out
}

// appendExtra appends the configured attributes of message i to dst. One that comes out empty is left
// out, since SQS refuses an empty value.
func appendExtra(dst []message.Attribute, extra []extraAttribute, v *view, i int) ([]message.Attribute, error) {
	for k := range extra {
		value, err := v.resolve(&extra[k].value, i)
		if err != nil {
			return dst, err
		}
		if value != "" {
			dst = append(dst, message.Attribute{Name: extra[k].name, Value: value})
		}
	}
	return dst, nil
}
