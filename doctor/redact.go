package doctor

import (
	"regexp"
	"slices"
	"strings"
)

const (
	// minSecret is the shortest text that is cut out. Anything shorter would mangle ordinary words and
	// is no secret of either cloud.
	minSecret = 8
	hidden    = "[hidden]"
)

// userInfo is the user and password of a URL.
var userInfo = regexp.MustCompile(`://[^/@\s]+@`)

// redactor cuts known secrets out of text. Nothing here prints one on purpose; this is for the texts
// of others (a linter, a proxy, a service) that may quote what they were given.
type redactor struct{ secrets []string }

// add makes values secret, in full and line by line, since texts are printed on one line.
func (r *redactor) add(values ...string) {
	for _, v := range values {
		for _, s := range append(strings.Split(v, "\n"), v) {
			if s = strings.TrimSpace(s); len(s) >= minSecret && !slices.Contains(r.secrets, s) {
				r.secrets = append(r.secrets, s)
			}
		}
	}
	// The longest first: a secret may hold another.
	slices.SortFunc(r.secrets, func(a, b string) int { return len(b) - len(a) })
}

// secretFields are the fields of ours that hold a secret, and the environment's variables that do.
var (
	secretFields    = []string{"secret", "token", "credentials_json"}
	secretVariables = []string{"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECRET_KEY", "AWS_CONTAINER_AUTHORIZATION_TOKEN"}
)

// addFields makes secret what stands in the secret fields of a configuration, parsed or not.
func (r *redactor) addFields(conf any) {
	switch v := conf.(type) {
	case map[string]any:
		for name, value := range v {
			if s, isText := value.(string); isText && slices.Contains(secretFields, name) {
				r.add(s)
			}
			r.addFields(value)
		}
	case []any:
		for _, value := range v {
			r.addFields(value)
		}
	}
}

// addEnvironment makes secret what the environment holds.
func (r *redactor) addEnvironment(getenv func(string) string) {
	for _, name := range secretVariables {
		r.add(getenv(name))
	}
}

func (r *redactor) clean(s string) string {
	for _, secret := range r.secrets {
		s = strings.ReplaceAll(s, secret, hidden)
	}
	return userInfo.ReplaceAllString(r.cleanCut(s), "://"+hidden+"@")
}

// cleanCut cuts out the beginnings of secrets that an ellipsis follows: who shortened the text did not
// know what was in it.
func (r *redactor) cleanCut(s string) string {
	parts := strings.Split(s, "…")
	for i, part := range parts[:len(parts)-1] {
		for _, secret := range r.secrets {
			for n := min(len(secret), len(part)); n >= minSecret; n-- {
				if rest, ends := strings.CutSuffix(part, secret[:n]); ends {
					parts[i] = rest + hidden
					n = 0
				}
			}
		}
	}
	return strings.Join(parts, "…")
}

// shortKeyID shows as much of a key id as tells it from another.
func shortKeyID(id string) string {
	const head, tail = 4, 4
	if len(id) <= head+tail+2 {
		return "…"
	}
	return id[:head] + "…" + id[len(id)-tail:]
}
