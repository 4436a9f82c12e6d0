package localpubsub

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// fields is the body of a request that isn't large: its members' texts by camelCase name. Null
// members are absent.
type fields map[string][]byte

// readFields reads a body that may hold the names of known, in camelCase or as in the .proto file.
// A name with a leading "?" is one that the service knows and this package does not: it is refused
// as UNIMPLEMENTED unless its value is empty. An empty body is an empty object.
func readFields(body []byte, known ...string) (fields, *apiError) {
	f := fields{}
	if !utf8.Valid(body) {
		return nil, invalidPayload("Encountered non UTF-8 code points.")
	}
	s := scanner{b: body}
	if s.peek() == 0 && s.i == len(body) {
		return f, nil
	}
	s.object(func(raw []byte) {
		name, supported := lookUp(string(raw), known)
		if name == "" {
			s.err = invalidPayload("Unknown name \"" + string(raw) + "\": Cannot find field.")
			s.err.field("")
			return
		}
		value := s.skip(0)
		text := string(value)
		switch {
		case s.err != nil || text == "null":
		case f[name] != nil:
			s.fail("Duplicate name: " + name)
		case !supported && text != "{}" && text != "[]" && text != `""` && text != "false" && text != "0":
			s.err = refuse("UNIMPLEMENTED", "localpubsub does not support %s", name)
		default:
			f[name] = value
		}
	})
	if s.end(); s.err != nil {
		return nil, s.err
	}
	return f, nil
}

// lookUp returns the camelCase name that s spells; "" for none.
func lookUp(s string, known []string) (name string, supported bool) {
	for _, k := range known {
		name, unsupported := strings.CutPrefix(k, "?")
		if s == name || s == snake(name) {
			return name, !unsupported
		}
	}
	return "", false
}

func snake(camel string) string {
	var b strings.Builder
	for _, r := range camel {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// get reads a member into v; absent leaves v as it is.
func (f fields) get(name string, v any) *apiError {
	text, ok := f[name]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(text, v); err != nil {
		return invalid("Invalid value at '%s'", snake(name))
	}
	return nil
}

// nameIs checks that a name in the body, if there is one, is the one in the path.
func (f fields) nameIs(n name) *apiError {
	s := n.String()
	if err := f.get("name", &s); err != nil {
		return err
	}
	if s != n.String() {
		return invalid("The name in the request body (%s) is not the one in the URL (%s).", s, n)
	}
	return nil
}
