package records

import (
	"fmt"
	"unicode/utf8"

	"millwright/models"
)

// The fields of work orders and feedback (docs/contract.md, Records). The API's schema has the
// same limits; in the console these rules report them.

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

// checkText returns the errors in a field of at most some characters.
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

// checkDescribed is checkText for the optional fields of a record.
func checkDescribed(description, externalID *string) []models.FieldError {
	return append(checkText("/description", description, models.MaxDescription), checkText("/external_id", externalID, models.MaxExternalID)...)
}
