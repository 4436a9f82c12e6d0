package doctor

import (
	"fmt"
	"io"
	"strings"
)

// status is the verdict of a line.
type status uint8

const (
	ok      status = iota
	skipped        // could not be checked; the line says why
	warning        // works, but not as the operator may believe
	failure        // does not work; exit status 1
)

func (s status) String() string {
	return [...]string{ok: "ok", skipped: "skipped", warning: "warning", failure: "failure"}[s]
}

// finding is one line: what was looked at, what was seen, and how to mend it.
type finding struct {
	status  status
	subject string // one word or two, the same in every report
	text    string
	mend    string // empty where there is nothing to do
}

func newFinding(s status, subject, mend, format string, args ...any) finding {
	return finding{s, subject, fmt.Sprintf(format, args...), mend}
}

// report prints findings as they come and counts them. It is used from one goroutine.
type report struct {
	w      io.Writer
	hide   *redactor
	counts [failure + 1]int
}

// heading begins the findings of one output.
func (r *report) heading(format string, args ...any) {
	fmt.Fprintf(r.w, "\n%s\n", oneLine(r.hide.clean(fmt.Sprintf(format, args...))))
}

func (r *report) add(f finding) {
	r.counts[f.status]++
	text := f.text
	if f.mend != "" {
		text += " → " + f.mend
	}
	fmt.Fprintf(r.w, "  %-7s  %-12s %s\n", f.status, f.subject, oneLine(r.hide.clean(text)))
}

func (r *report) ok(subject, format string, args ...any) {
	r.add(newFinding(ok, subject, "", format, args...))
}

func (r *report) skip(subject, mend, format string, args ...any) {
	r.add(newFinding(skipped, subject, mend, format, args...))
}

func (r *report) warn(subject, mend, format string, args ...any) {
	r.add(newFinding(warning, subject, mend, format, args...))
}

func (r *report) fail(subject, mend, format string, args ...any) {
	r.add(newFinding(failure, subject, mend, format, args...))
}

// summary ends the report.
func (r *report) summary() {
	var parts []string
	for _, p := range []struct {
		n         int
		one, many string
	}{
		{r.counts[failure], "failure", "failures"},
		{r.counts[warning], "warning", "warnings"},
		{r.counts[skipped], "skipped", "skipped"},
		{r.counts[ok], "ok", "ok"},
	} {
		switch {
		case p.n == 1:
			parts = append(parts, "1 "+p.one)
		case p.n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.many))
		}
	}
	fmt.Fprintf(r.w, "\n%s\n", strings.Join(parts, ", "))
}

// oneLine folds what would break the report's lines.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// group prints 1048576 as 1,048,576.
func group(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
