package models

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Messages about rejected strings (api.md 4.10).
const (
	PlainTextRule = "A string must be UTF-8 without control characters other than tabs and line breaks."
	BlankTextRule = "The text must have at least one visible character."
)

// IsText reports whether the database can store s: UTF-8 without NUL.
func IsText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// IsPlain reports whether s is UTF-8 without control characters other than tabs, line
// feeds and carriage returns.
func IsPlain(s string) bool { return utf8.ValidString(s) && strings.IndexFunc(s, isControl) < 0 }

func isControl(r rune) bool { return unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r' }

// IsBlank reports whether s shows nothing: each of its characters is invisible.
func IsBlank(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !IsInvisible(r) })
}

// Trim returns s without white space around it, and "" for a string that shows nothing.
// Other invisible characters stay: a variation selector changes the character before it.
func Trim(s string) string {
	if IsBlank(s) {
		return ""
	}
	return strings.TrimSpace(s)
}

// IsInvisible reports whether a string of r alone shows nothing: white space, control and
// format characters, what Unicode lets programs ignore, and the blanks of some scripts.
// A combining mark is visible: it shows its accent without a letter too.
func IsInvisible(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) ||
		unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r) ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) ||
		r == brailleBlank || r == khitanFiller || r == nullNotehead
}

// Characters without ink that no property of Unicode names.
const (
	brailleBlank = '\u2800'
	khitanFiller = '\U00016fe4'
	nullNotehead = '\U0001d159'
)
