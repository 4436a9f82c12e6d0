package message

import (
	"cmp"
	"iter"
	"net/textproto"
	"slices"
	"strings"
)

// neverForwarded are request headers that no configuration lets through: what authenticates the
// provider, what describes the connection, and what the message says by itself. Names beginning with
// ownPrefix are Ankusa's own and are not let through either.
var neverForwarded = map[string]bool{
	"authorization":       true,
	"proxy-authorization": true,
	"cookie":              true,
	"x-api-key":           true,
	"host":                true,
	"content-length":      true,
	"content-type":        true,
	"connection":          true,
	"keep-alive":          true,
	"transfer-encoding":   true,
	"te":                  true,
	"trailer":             true,
	"upgrade":             true,
	"expect":              true,
}

const ownPrefix = "x-ankusa-"

// NeverForwarded reports whether a header of this name, in any case, stays behind whatever the rule.
func NeverForwarded(name string) bool { return staysBehind(lower(name)) }

func staysBehind(lowerName string) bool {
	return neverForwarded[lowerName] || strings.HasPrefix(lowerName, ownPrefix)
}

// ForwardRule says which of a message's metadata are request headers that may travel with the hook.
// The zero value is the default rule.
type ForwardRule struct {
	// names holds the listed names in lower case; nil is the default rule, empty forwards nothing.
	names map[string]bool
}

// ForwardDefault is the rule without configuration. Benthos's http_server puts request headers, query
// parameters, route variables and cookies by name into one flat map, so the rule takes only keys that
// are written as header names are (X-Github-Event), and drops those that the Cookie header names.
//
// What it cannot see: a query parameter or route variable that is written like a header; and cookies
// that the metadata's Cookie does not name, because they came in a second Cookie header, or because a
// query parameter, a route variable or a cookie called Cookie has taken the header's place. Who cares
// lists names.
func ForwardDefault() ForwardRule { return ForwardRule{} }

// ForwardNames is the rule that takes exactly the listed names, in any case. No names, or nil, forwards
// nothing.
func ForwardNames(names []string) ForwardRule {
	r := ForwardRule{names: make(map[string]bool, len(names))}
	for _, name := range names {
		if name = lower(name); !staysBehind(name) {
			r.names[name] = true
		}
	}
	return r
}

// Select returns the headers of meta that the rule lets through, with names in lower case. Names that
// differ only in case are joined by ", " in the order of their keys. It returns nil when there are
// none, and an invalid_field that names the header when a name or value is not UTF-8. It ranges over
// meta once.
func (r ForwardRule) Select(meta iter.Seq2[string, string]) (map[string]string, error) {
	type header struct{ key, name, value string }
	var (
		found   []header
		cookies map[string]bool
	)
	for key, value := range meta {
		if r.names == nil && key == "Cookie" {
			cookies = cookieNames(value)
		}
		if name, ok := r.takes(key); ok {
			found = append(found, header{key, name, value})
		}
	}
	// A cookie is in the metadata under exactly the name it has, so the names are compared as they are.
	found = slices.DeleteFunc(found, func(h header) bool { return cookies[h.key] })
	if len(found) == 0 {
		return nil, nil
	}
	slices.SortFunc(found, func(a, b header) int { return cmp.Compare(a.key, b.key) })
	headers := make(map[string]string, len(found))
	for _, h := range found {
		if err := checkHeader(h.name, h.value); err != nil {
			return nil, err
		}
		if earlier, ok := headers[h.name]; ok {
			h.value = earlier + ", " + h.value
		}
		headers[h.name] = h.value
	}
	return headers, nil
}

// takes returns the header's name if the rule lets the key through, cookies aside.
func (r ForwardRule) takes(key string) (name string, ok bool) {
	if r.names != nil {
		name = lower(key)
		return name, r.names[name]
	}
	// CanonicalMIMEHeaderKey leaves alone what can be no header name at all ("A b"), hence IsHeaderName.
	if key == "" || key[0] < 'A' || key[0] > 'Z' || !IsHeaderName(key) || textproto.CanonicalMIMEHeaderKey(key) != key {
		return "", false
	}
	name = lower(key)
	return name, !staysBehind(name)
}

// IsHeaderName reports whether s can be the name of a request header: a token of RFC 9110 section 5.6.2.
func IsHeaderName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}

// cookieNames returns the names in a Cookie header. It is laxer than net/http about what follows a
// name: taking one name too many as a cookie's loses a header, one too few leaks a session.
func cookieNames(header string) map[string]bool {
	names := map[string]bool{}
	for part := range strings.SplitSeq(header, ";") {
		name, _, _ := strings.Cut(part, "=")
		if name = textproto.TrimString(name); name != "" {
			names[name] = true
		}
	}
	return names
}

// lower is strings.ToLower for ASCII letters only. Header names have no others, and Unicode's rules
// would fold letters into them that are none (the Kelvin sign into k).
func lower(s string) string {
	i := 0
	for i < len(s) && (s[i] < 'A' || s[i] > 'Z') {
		i++
	}
	if i == len(s) {
		return s
	}
	b := []byte(s)
	for ; i < len(b); i++ {
		if 'A' <= b[i] && b[i] <= 'Z' {
			b[i] += 'a' - 'A'
		}
	}
	return string(b)
}
