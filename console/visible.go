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

// directions are the characters that embed, override and isolate directions, in pairs with
// how they are spelled out. Marks and joiners, which languages need, are not among them.
var directions = func() (pairs []string) {
	for _, span := range [][2]rune{{0x202a, 0x202e}, {0x2066, 0x2069}} {
		for r := span[0]; r <= span[1]; r++ {
			pairs = append(pairs, string(r), fmt.Sprintf("‹U+%04X›", r))
		}
	}
	return pairs
}()

var directionSpeller = strings.NewReplacer(directions...)

// spellDirections returns a page or a cell with those characters spelled out, so that no text
// reorders itself or what follows it.
func spellDirections(text string) string {
	for i := 0; i < len(directions); i += 2 {
		if strings.Contains(text, directions[i]) {
			return directionSpeller.Replace(text)
		}
	}
	return text
}
