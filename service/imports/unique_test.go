package imports_test

import (
	"context"
	"sync"
	"testing"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// Entries of one file may take each other's unique values, in whichever order the file
// lists them: the dry run and the import agree.
func TestImportSwapsUniqueValues(t *testing.T) {
	for name, test := range map[string]struct{ text, sql, want string }{
		"two e-mail addresses": {`
people:
  - {key: ann, email: bob@acme.example.com}
  - {key: bob, email: ANN@acme.example.com}
`, `SELECT string_agg(email, ' ' ORDER BY email) FROM people WHERE id IN ($1, $2)`, "ANN@acme.example.com bob@acme.example.com"},
		"an e-mail address that its holder gives up": {`
people:
  - {key: ann, email: bob@acme.example.com}
  - {key: bob, email: robert@acme.example.com}
`, `SELECT string_agg(email, ' ' ORDER BY email) FROM people WHERE id IN ($1, $2)`, "bob@acme.example.com robert@acme.example.com"},
		"an e-mail address that a new person takes": {`
people:
  - {key: rob, name: Rob, email: bob@acme.example.com}
  - {key: ann, email: new@acme.example.com}
  - {key: bob, email: ann@acme.example.com}
`, `SELECT string_agg(email, ' ' ORDER BY email) FROM people WHERE id IN ($1, $2)`, "ann@acme.example.com new@acme.example.com"},
		"two client ids": {`
integrations:
  - {key: erp, client_id: cli_reader}
  - {key: reader, client_id: cli_erp}
`, `SELECT string_agg(client_id, ' ' ORDER BY client_id) FROM integrations WHERE id IN ($3, $4) AND $1 <> $2`, "cli_erp cli_reader"},
	} {
		t.Run(name, func(t *testing.T) {
			f := servicetest.New(t)
			text := "organization: {key: acme}" + test.text
			if _, err := f.Imports.Compare(t.Context(), []byte(text)); err != nil {
				t.Fatalf("the dry run: %v", err)
			}
			importFile(t, f, text)
			wantSentences(t, "after the import", compared(t, f, text))
			got := servicetest.Value[string](f, `SELECT `+`(`+test.sql+`) WHERE $3 <> $4`, f.ID("ann"), f.ID("bob"), f.ID("erp"), f.ID("reader"))
			if got != test.want {
				t.Errorf("stored is %q, want %q", got, test.want)
			}
		})
	}
}

// An import takes its turn among the writes of the organization.
func TestImportCountsAsItsOrganization(t *testing.T) {
	f := servicetest.New(t)
	gate := servicetest.Begin(t, f)
	servicetest.ExecIn(t, gate, `SELECT pg_advisory_xact_lock(hashtextextended('import acme', 0))`)
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan error)
	var all sync.WaitGroup
	for range 2 + 128 + 1 { // two run, and as many wait as may
		all.Go(func() {
			_, err := f.Imports.Run(ctx, []byte("organization: {key: acme}\n"))
			select {
			case results <- err:
			case <-ctx.Done():
			}
		})
	}
	if err := <-results; models.CodeOf(err) != models.CodeUnavailable {
		t.Errorf("one import too many: %v, want %s", err, models.CodeUnavailable)
	}
	ann := servicetest.Person(t, f, "ann")
	if err := f.Inventory.Assign(t.Context(), ann, store.NoKey, f.ID("annex"), f.ID("bob"), f.ID("reading")); models.CodeOf(err) != models.CodeUnavailable {
		t.Errorf("another write of the organization: %v, want %s", err, models.CodeUnavailable)
	}
	_, err := f.Imports.Run(t.Context(), []byte("organization: {key: polar}\n"))
	servicetest.WantCode(t, "an import of another organization", err, "")
	cancel()
	all.Wait()
}
