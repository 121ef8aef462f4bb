package console

import (
	"fmt"
	"strings"
	"unicode"
)

// visible returns a string that receivers or other people wrote with its control and
// direction characters spelled out, so that it looks like what it is. Line ends and tabs stay.
func visible(text string) string {
	if !strings.ContainsFunc(text, isInvisible) {
		return text
	}
	return spelled(text, isInvisible)
}

// spelled returns the text with some characters spelled out.
func spelled(text string, is func(rune) bool) string {
	var b strings.Builder
	for _, r := range text {
		if is(r) {
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

// directions are the characters that embed, override and isolate directions. Marks and joiners, which
// languages need, are not among them.
const directions = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"

// spellDirections returns a page or a cell with those characters spelled out, so that no text
// reorders itself or what follows it.
func spellDirections(text string) string {
	for _, direction := range directions {
		if strings.ContainsRune(text, direction) {
			return spelled(text, func(r rune) bool { return strings.ContainsRune(directions, r) })
		}
	}
	return text
}
