package models

import (
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
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

// NFC puts all strings that the value points to, in structs, slices, maps and interfaces too, into Unicode's normal form C,
// in which strings are stored.
func NFC(value any) { normalize(reflect.ValueOf(value)) }

func normalize(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(norm.NFC.String(v.String()))
		}
	case reflect.Pointer:
		normalize(v.Elem())
	case reflect.Interface:
		if text, ok := v.Interface().(string); ok && v.CanSet() {
			v.Set(reflect.ValueOf(norm.NFC.String(text)))
			return
		}
		normalize(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				normalize(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			normalize(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if text, ok := v.MapIndex(key).Interface().(string); ok {
				v.SetMapIndex(key, reflect.ValueOf(norm.NFC.String(text)).Convert(v.Type().Elem()))
			}
		}
	default: // has no text
	}
}

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
