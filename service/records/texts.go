package records

import (
	"millwright/models"
	"millwright/service/store"
)

// The fields of work orders and feedback (api.md 2.9). The API's schema has the
// same limits; in the console these rules report them.

// checkTitle returns what is wrong with a title or a subject.
func checkTitle(pointer, text string) []models.FieldError {
	if fields := store.CheckBlank(pointer, text); fields != nil {
		return fields
	}
	return store.CheckText(pointer, &text, models.MaxTitle)
}
