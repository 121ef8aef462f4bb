package servicetest

import (
	"errors"
	"strings"

	"millwright/models"
)

// Invisible are strings without a visible character, by their contents. models defines all of them.
var Invisible = map[string]string{
	"white space":        " \t\u00a0\u3000\n",
	"a zero-width space": "\u200b",
	"a Hangul filler":    "\u3164",
	"a braille blank":    "\u2800",
	"several kinds":      "\u00ad \ufe0f\U000e0041\u202e\u034f\ufeff",
}

// Each is what of returns for each of the items.
func Each[Item, Result any](items []Item, of func(Item) Result) (all []Result) {
	for _, item := range items {
		all = append(all, of(item))
	}
	return all
}

// Listed joins what of returns for each of the items with commas.
func Listed[Item any](items []Item, of func(Item) string) string {
	return strings.Join(Each(items, of), ", ")
}

// Fields are the pointers and codes of the fields that an error is about, else its Outcome.
func Fields(err error) string {
	if known, ok := errors.AsType[*models.Error](err); ok && len(known.Fields) > 0 {
		return Listed(known.Fields, func(field models.FieldError) string { return field.Pointer + " " + field.Code })
	}
	return Outcome(err)
}

// Pointers lists the pointers of the fields that an error is about.
func Pointers(err error) string {
	known, _ := errors.AsType[*models.Error](err)
	if known == nil {
		return ""
	}
	return strings.Join(Each(known.Fields, func(field models.FieldError) string { return field.Pointer }), " ")
}
