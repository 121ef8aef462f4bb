package mail

import (
	"strings"
	"unicode"
)

// Unlinked returns the text with spaces in what mail programs would show as links: web and
// e-mail addresses. It is for names and other input of people, which stays readable.
func Unlinked(text string) string {
	var b strings.Builder
	runes := []rune(text)
	for i, r := range runes {
		b.WriteRune(r)
		if i+1 < len(runes) && links(r, runes[i+1], i > 0 && isDigit(runes[i-1])) {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// links reports whether a link may go on from r to next. Numbers and times stay as they are.
func links(r, next rune, afterDigit bool) bool {
	switch {
	case unicode.IsSpace(next):
		return false
	case strings.ContainsRune(".。．｡", r): // browsers read the others as the first
		return !isDigit(next) && !(next < unicode.MaxASCII && unicode.IsPunct(next))
	case strings.ContainsRune(":：", r):
		return !(afterDigit && isDigit(next))
	}
	return strings.ContainsRune("@＠", r) || r == '\\' && next == '\\'
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }
