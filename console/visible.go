package console

import (
	"fmt"
	"strings"
	"unicode"
)

// visible returns a text that receivers or other people wrote with its control and
// direction characters spelled out, so that it looks like what it is. Line ends and tabs stay.
func visible(text string) string {
	if !strings.ContainsFunc(text, isInvisible) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if isInvisible(r) {
			fmt.Fprintf(&b, "‹U+%04X›", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isInvisible(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case '\r', '\u2028', '\u2029':
		return true
	}
	return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r)
}
