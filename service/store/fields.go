package store

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"millwright/models"
)

// KnownIdentities selects the identities of an array that the organization may name: its own
// except deleted teams, and its service companies.
func KnownIdentities(identities, organization string) string {
	return `
	ARRAY(SELECT i.id::text FROM identities i
		WHERE i.id = ANY (` + identities + `) AND i.deleted_at IS NULL AND (i.organization_id = ` + organization + ` OR i.id IN (
			SELECT s.company_id FROM service_companies s WHERE s.customer_id = ` + organization + `)))`
}

// UnknownField reports an id that names no such thing.
func UnknownField(pointer, what string) models.FieldError {
	return models.FieldError{Pointer: pointer, Code: "unknown", Detail: "There is no such " + what + "."}
}

// CheckActorName returns what is wrong with the name of a person, a team or an integration:
// CheckName's, and a name that would look like another actor in the log.
func CheckActorName(name string) []models.FieldError {
	if fields := CheckName(name); fields != nil || !models.IsReservedName(name) {
		return fields
	}
	return []models.FieldError{{Pointer: "/name", Code: "reserved", Detail: models.ReservedNameRule}}
}

// CheckName returns what is wrong with a name: it must fit in a list of names and in a line of
// the log.
func CheckName(name string) []models.FieldError {
	field := models.FieldError{Pointer: "/name"}
	switch {
	case models.IsBlank(name):
		field.Code, field.Detail = "required", "Enter a name."
	case utf8.RuneCountInString(name) > models.MaxName:
		field.Code, field.Detail = "too_long", fmt.Sprintf("A name has at most %d characters.", models.MaxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		field.Code, field.Detail = "value", "A name is one line of text without control characters."
	default:
		return nil
	}
	return []models.FieldError{field}
}

// CheckText returns the errors in a field of at most some characters.
func CheckText(pointer string, text *string, most int) []models.FieldError {
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

// CheckBlank rejects an invisible string in a required field.
func CheckBlank(pointer, text string) []models.FieldError {
	if !models.IsBlank(text) {
		return nil
	}
	return []models.FieldError{{Pointer: pointer, Code: "blank", Detail: models.BlankTextRule}}
}

// CheckDescribed is CheckText for the optional fields of a record. A blank external_id is
// rejected: no one would see which one is taken.
func CheckDescribed(description, externalID *string) []models.FieldError {
	fields := CheckText("/description", description, models.MaxDescription)
	if externalID == nil {
		return fields
	}
	if blank := CheckBlank("/external_id", *externalID); blank != nil {
		return append(fields, blank...)
	}
	return append(fields, CheckText("/external_id", externalID, models.MaxExternalID)...)
}
