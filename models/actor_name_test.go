package models_test

import (
	"testing"

	"millwright/models"
)

func TestNamesOfOtherActorsAreReserved(t *testing.T) {
	for name, reserved := range map[string]bool{
		"Millwright": true, "millwright": true, "MILLWRIGHT": true, " Mill wright ": true, "Import": true, "import": true,
		"Jonas Lindqvist (operator)": true, "Jonas Lindqvist (OPERATOR)": true, "Jonas Lindqvist(operator)": true, "Jonas Lindqvist ( operator )": true,
		"ERP (API)": true, "ERP (api)": true, "(API)": true,
		// Invisible characters, spaces of Unicode and other forms of letters.
		"Mill\u200bwright": true, "Import\u2060": true, "\u3164Import": true, "Im\u00adport": true, "Import\u2800": true, "Millwright\ufe0f": true, "Im\U000e0070port": true,
		"Jonas (oper\u200cator)": true, "Jonas (operator\u200d)\u200e": true, "ERP\u00a0(API)": true, "ERP (A\u034fPI)": true, "Jonas (operator)\u3164": true,
		"\uff2d\uff49\uff4c\uff4c\uff57\uff52\uff49\uff47\uff48\uff54": true, "ERP \uff08API\uff09": true, "\u2148mport": true, "Jonas (o\U0001d429erator)": true, "Import\u115f": true,
		"\u0130mport": true, "Jonas (operator\u207e": true,

		"Millwright's apprentice": false, "Anna Millwright": false, "Import desk": false, "Ina Porter": false, "Operator": false, "(operator) Jonas": false,
		"Jonas (operator) Lindqvist": false, "Jonas (operators)": false, "ERP (APIs)": false, "ERP API": false, "API": false, "Jonas [operator]": false, "": false,
	} {
		if got := models.IsReservedName(name); got != reserved {
			t.Errorf("%+q is reserved: %v, want %v", name, got, reserved)
		}
	}
}
