package store_test

import (
	"slices"
	"testing"

	"millwright/service/servicetest"
	"millwright/service/store"
)

// A database that another version of the program folded is folded again by its migration. What does not differ keeps its
// place in lists of changes.
func TestAMigrationFoldsAgain(t *testing.T) {
	t.Parallel()
	h := servicetest.NewHarness(t)
	h.NewWorkOrder([]string{"bob"}, nil)
	folded := func() string {
		return servicetest.Value[string](h.Fixture, `SELECT string_agg(row, E'\n' ORDER BY row) FROM (
			SELECT concat_ws(' ', id, sort_key, words) FROM identities
			UNION SELECT concat_ws(' ', id, sort_key, words, changed_at) FROM inventory_nodes
			UNION SELECT concat_ws(' ', id, sort_key, words, changed_xid) FROM forms
			UNION SELECT concat_ws(' ', id, sort_key) FROM permission_definitions
			UNION SELECT concat_ws(' ', id, folded_email, words) FROM people
			UNION SELECT concat_ws(' ', id, words) FROM work_order_words) t (row)`)
	}
	before := folded()
	exec(t, h.Fixture,
		`UPDATE identities SET sort_key = 'old', words = ''`, `UPDATE permission_definitions SET sort_key = 'old'`,
		`UPDATE people SET folded_email = id, words = ''`, `DELETE FROM work_order_words`, `UPDATE fold_version SET version = 'old'`)
	if equal := migrateAgain(t, h.Fixture); len(equal) > 0 {
		t.Errorf("equal addresses: %v", equal)
	}
	servicetest.Expect(t, "folded again", folded(), before)
}

// Of people whose addresses have become equal the oldest keeps it; the migration names the others. Two people may exchange addresses.
func TestAMigrationNamesEqualAddresses(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ann, bob, cat := f.ID("ann"), f.ID("bob"), f.ID("cat")
	older, younger := min(ann, bob), max(ann, bob)
	exec(t, f,
		`UPDATE people SET email = 'straße@x.example', folded_email = 'one@x.example' WHERE id = '`+ann+`'`,
		`UPDATE people SET email = 'STRASSE@X.example', folded_email = 'two' WHERE id = '`+bob+`'`,
		`UPDATE people SET email = 'one@x.example', folded_email = 'three' WHERE id = '`+cat+`'`,
		`UPDATE fold_version SET version = 'old'`)
	want := []store.SameEmail{{OrganizationID: f.Acme.OrganizationID, PersonID: younger, OtherID: older}}
	if equal := migrateAgain(t, f); !slices.Equal(equal, want) {
		t.Errorf("equal addresses are %v, want %v", equal, want)
	}
	for id, want := range map[string]string{older: "strasse@x.example", younger: "strasse@x.example " + younger, cat: "one@x.example"} {
		servicetest.Expect(t, "folded",
			servicetest.Value[string](f, `SELECT folded_email FROM people WHERE id = $1`, id), want)
	}
}

func exec(t *testing.T, f *servicetest.Fixture, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		servicetest.Must(t, servicetest.ErrorOf(f.Pool.Exec(t.Context(), sql)))
	}
}

func migrateAgain(t *testing.T, f *servicetest.Fixture) []store.SameEmail {
	t.Helper()
	_, equal, err := store.Migrate(t.Context(), f.Pool.Config().ConnString(), "")
	servicetest.Must(t, err)
	return equal
}
