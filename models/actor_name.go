package models

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// What Log Records show that no identity has (api.md 1.5): the names of an operator and of an
// import, and what follows the name of an integration and of a person as whom an operator acts.
const (
	OperatorName   = "Millwright"
	ImportName     = "Import"
	APISuffix      = " (API)"
	OperatorSuffix = " (operator)"
)

// ReservedNameRule is the message about a name that IsReservedName rejects.
const ReservedNameRule = "A name may not be Millwright or Import, and may not end in (API) or (operator): the log shows by these who acted."

// IsReservedName reports whether an identity with the name would look like someone else in Log
// Records, whatever its case, its invisible characters and its forms of letters.
func IsReservedName(name string) bool {
	seen := withoutLooks(name)
	return seen == withoutLooks(OperatorName) || seen == withoutLooks(ImportName) ||
		strings.HasSuffix(seen, withoutLooks(APISuffix)) || strings.HasSuffix(seen, withoutLooks(OperatorSuffix))
}

// withoutLooks returns the name without what makes it look different: lower case, one form of
// each letter, and nothing invisible.
func withoutLooks(name string) string {
	return strings.Map(func(r rune) rune {
		if IsInvisible(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFKC.String(name))
}
