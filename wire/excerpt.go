package wire

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxExcerptBytes is how much of a reply's body may appear in an error: enough to recognise a proxy's
// page, too little to leak what such a page may quote.
const maxExcerptBytes = 120

// Excerpt returns the start of an answer that is not the API talking, on one line and printable, for
// error texts. White space is folded, and what can't be printed becomes a dot.
func Excerpt(body []byte) string {
	var b strings.Builder
	cut, space := false, false
	for len(body) > 0 {
		r, n := utf8.DecodeRune(body)
		bad := r == utf8.RuneError && n <= 1
		body = body[n:]
		if !bad && unicode.IsSpace(r) {
			space = b.Len() > 0
			continue
		}
		if bad || !unicode.IsPrint(r) {
			r = '.'
		}
		if b.Len()+utf8.RuneLen(r)+1 > maxExcerptBytes {
			cut = true
			break
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	switch {
	case cut:
		return b.String() + "…"
	case b.Len() == 0:
		return "(empty)"
	}
	return b.String()
}
