package config

import (
	"fmt"
	"time"

	// parse_duration, which the rules for durations call.
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
)

// The functions of this file write lint rules: Bloblang mappings whose `this` is the field's raw value.
// A value that is still a `${…}` or empty passes; the parse functions see the resolved one.

// lintInt wants a whole number of at least lo and at most hi.
func lintInt(lo, hi int, why string) string {
	return fmt.Sprintf(`root = if this.type() == "number" && (this < %d || this > %d) { [ "must be %s to %s, got " + this.string() + "%s" ] }`,
		lo, hi, group(lo), group(hi), because(why))
}

// lintDuration wants a duration of at least lo and at most hi (0 for no upper bound).
func lintDuration(lo, hi time.Duration, why string) string {
	upper, text := "false", "at least "+lo.String()
	if hi > 0 {
		upper, text = fmt.Sprintf("$ns > %d", hi), lo.String()+" to "+hi.String()
	}
	return fmt.Sprintf(`let ns = this.string().parse_duration().catch(null)
root = if this.string() == "" || this.string().contains("${") { [] } else if $ns == null { [ "is no duration such as 20ms or 5s: " + this.string() ] } else if $ns < %d || %s { [ "must be %s, got " + this.string() + "%s" ] }`,
		lo, upper, text, because(why))
}

// lintMatch wants a static string that matches a regular expression; msg says what is expected.
func lintMatch(re, msg string) string {
	return fmt.Sprintf(`root = if this.type() == "string" && this != "" && !this.contains("${") && !this.re_match(%q) { [ "%s, got " + this ] }`, re, msg)
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// group prints 1048576 as 1,048,576.
func group(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
