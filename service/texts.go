package service

import (
	"fmt"
	"unicode/utf8"

	"millwright/models"
)

// The texts of work orders and feedback (docs/contract.md, Records). The API's schema has the
// same limits; people in the app are told by these.

// checkTitle returns what is wrong with a title or a subject.
func checkTitle(pointer, text string) []models.FieldError {
	if fields := checkBlank(pointer, text); fields != nil {
		return fields
	}
	return checkText(pointer, &text, models.MaxTitle)
}

// checkBlank rejects a required text of white space alone.
func checkBlank(pointer, text string) []models.FieldError {
	if !models.IsBlank(text) {
		return nil
	}
	return []models.FieldError{{Pointer: pointer, Code: "blank", Detail: models.BlankTextRule}}
}

// checkText returns what is wrong with a text of at most some characters, nil for none.
func checkText(pointer string, text *string, most int) []models.FieldError {
	switch {
	case text == nil:
		return nil
	case utf8.RuneCountInString(*text) > most:
		return []models.FieldError{{Pointer: pointer, Code: "too_long", Detail: fmt.Sprintf("The text must have at most %d characters.", most)}}
	case !models.IsPlain(*text):
		return []models.FieldError{{Pointer: pointer, Code: "value", Detail: models.PlainTextRule}}
	}
	return nil
}

// checkDescribed is checkText for the optional texts of a record.
func checkDescribed(description, externalID *string) []models.FieldError {
	return append(checkText("/description", description, models.MaxDescription), checkText("/external_id", externalID, models.MaxExternalID)...)
}
