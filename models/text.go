package models

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Messages about rejected strings (api.md 4.10).
const (
	PlainTextRule = "A string must be UTF-8 without control characters other than tabs and line breaks."
	BlankTextRule = "The text must not consist of white space alone."
)

// IsText reports whether the database can store s: UTF-8 without NUL.
func IsText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// IsPlain reports whether s is UTF-8 without control characters other than tabs, line
// feeds and carriage returns.
func IsPlain(s string) bool { return utf8.ValidString(s) && strings.IndexFunc(s, isControl) < 0 }

func isControl(r rune) bool { return unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r' }

// IsBlank reports whether s is empty or white space.
func IsBlank(s string) bool { return strings.TrimSpace(s) == "" }
