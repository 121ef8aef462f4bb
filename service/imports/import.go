package imports

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"millwright/models"
	"millwright/service/store"
)

// Result names what an import created or found. Secrets are included only where
// this import set them.
type Result struct {
	OrganizationID string                 `json:"organization_id"`
	IDs            map[string]string      `json:"ids"`
	Integrations   map[string]Integration `json:"integrations"`
	// Differences are what the import created and changed, in the order of the file.
	Differences []*Difference `json:"-"`
}

// Integration is an integration of an import.
type Integration struct {
	ClientID     string             `json:"client_id"`
	ClientSecret string             `json:"client_secret,omitempty"`
	IdentityID   string             `json:"identity_id"`
	Webhooks     map[string]Webhook `json:"webhooks"`
}

// Webhook is a webhook address of an import.
type Webhook struct {
	ID     string `json:"id"`
	Secret string `json:"secret,omitempty"`
}

// Run creates or updates one organization with everything the console would hold
// (docs/import.md), in one transaction. Rows are found by the file's keys,
// so a second run has no effect; what the file leaves out keeps its value. The
// error is a *FileError if the file is to blame, and a *ConflictError if it
// would undo what was changed since the last import.
func (s *Imports) Run(ctx context.Context, text []byte) (Result, error) {
	return s.runImport(ctx, text, importRejecting)
}

// Overwrite is Run that undoes what was changed since the last import.
func (s *Imports) Overwrite(ctx context.Context, text []byte) (Result, error) {
	return s.runImport(ctx, text, importOverwriting)
}

// Compare returns what an import of the file would do, from a snapshot: it
// does not write or lock. Errors: Run's, except for conflicts.
func (s *Imports) Compare(ctx context.Context, text []byte) (Comparison, error) {
	compared, err := s.runImport(ctx, text, importComparing)
	if err != nil {
		return Comparison{}, err
	}
	comparison := Comparison{OrganizationID: compared.OrganizationID, Differences: compared.Differences}
	if first := compared.Differences; len(first) > 0 && first[0].Kind == keyOrganization && first[0].Change == Created {
		comparison.OrganizationID = "" // it is only made up
	}
	return comparison, nil
}

// runImport runs an import of the kind that mode says.
func (s *Imports) runImport(ctx context.Context, text []byte, mode importMode) (Result, error) {
	file, err := readImportFileUntil(ctx, text)
	if err != nil {
		return Result{}, err
	}
	var passwords map[string]string
	organizationID, err := s.organizationWithKey(ctx, file.Organization.Key)
	if err != nil {
		return Result{}, err
	}
	transact := func(do func(*store.Tx) error) error { return s.Transaction(ctx, organizationID, store.NoKey, do) }
	if mode == importComparing {
		transact = func(do func(*store.Tx) error) error { return s.Snapshot(ctx, organizationID, do) }
	} else if passwords, err = s.newPasswords(ctx, file); err != nil {
		return Result{}, err
	}
	var imported Result
	err = transact(func(t *store.Tx) error {
		if err := t.Limit(importTimeout, importTimeout); err != nil {
			return err
		}
		// The import of a killed process must not go on waiting for a lock while it holds others.
		if err := t.Exec(`SELECT set_config('client_connection_check_interval', '1s', true)`); err != nil {
			return err
		}
		run := newImportRun(t, file, mode)
		run.passwords = passwords
		err := run.run(ctx)
		imported = run.result
		return err
	})
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && strings.HasPrefix(pg.Code, "23") {
		return Result{}, &FileError{[]string{fmt.Sprintf("the database rejects a row of %s (%s)", pg.TableName, pg.ConstraintName)}}
	}
	if err != nil {
		return Result{}, err
	}
	return imported, nil
}

// organizationWithKey returns the id of the organization with the import key, or "".
func (s *Imports) organizationWithKey(ctx context.Context, key string) (string, error) {
	var id string
	found := s.ORM.WithContext(ctx).Raw(`SELECT id FROM organizations WHERE key = ?`, key).Scan(&id)
	return id, s.Translate(found.Error)
}

// importMode is the treatment of changes made since the last import.
type importMode int

const (
	// importRejecting fails if the import would undo one.
	importRejecting importMode = iota
	// importOverwriting undoes them.
	importOverwriting
	// importComparing writes nothing at all.
	importComparing
)

// importTimeout bounds each statement of an import and its wait for another import of
// the organization. A large file takes longer than other rare writes.
const importTimeout = 10 * time.Minute

// importRun is one run of an import in its transaction: it reads the rows that
// earlier imports created, changes and adds to them what the file says, and saves
// those that are new or different.
type importRun struct {
	*store.Tx
	file     *importFile
	mode     importMode
	problems *FileError
	result   Result
	// kinds is what each key names, in the file or in an earlier import.
	kinds map[string]string
	// known holds the keys of earlier imports.
	known map[string]bool
	// stored holds the ids that earlier imports gave to the file's keys, by kind of key.
	stored map[string][]string
	// imported is what earlier imports left, by key.
	imported map[string]models.Digests
	// entries are the file's entries, in order, and entryOf finds them by key.
	entries []*importEntry
	entryOf map[string]*importEntry
	// companies are the ids of other organizations by their key.
	companies map[string]string
	// isServiceCompany holds the ids of the organization's service companies.
	isServiceCompany map[string]bool
	// passwords are the hashes for new people by their key.
	passwords map[string]string
	importRows
}

func newImportRun(t *store.Tx, file *importFile, mode importMode) *importRun {
	return &importRun{
		Tx: t, file: file, mode: mode, kinds: maps.Clone(file.kinds), problems: &FileError{},
		known: map[string]bool{}, stored: map[string][]string{}, imported: map[string]models.Digests{},
		entryOf: map[string]*importEntry{}, companies: map[string]string{}, isServiceCompany: map[string]bool{},
		result: Result{IDs: map[string]string{}, Integrations: map[string]Integration{}},
	}
}

// run imports the file. Nothing is written before everything was checked: a
// transaction that has written holds back the sync pages of all organizations.
func (r *importRun) run(ctx context.Context) error {
	if err := r.readKeys(); err != nil {
		return err
	}
	if err := r.readRows(); err != nil {
		return err
	}
	for _, merge := range []func() error{
		r.organization, r.definitions, r.people, r.teams, r.inventory, r.forms, r.serviceCompanies,
		func() error { return r.importIntegrations(ctx) }, r.assignments, r.checkStored,
	} {
		if err := merge(); err != nil {
			return err
		}
	}
	r.nameIDs()
	if err := r.problems.orNil(); err != nil || r.mode == importComparing {
		return err
	}
	if found := conflicts(r.result.Differences); len(found) > 0 && r.mode == importRejecting {
		return &ConflictError{found}
	}
	return r.save()
}

// readKeys reads what earlier imports created, under a lock that lets one import of
// an organization run at a time.
func (r *importRun) readKeys() error {
	key := r.file.Organization.Key
	if r.mode != importComparing {
		if err := r.Exec(`SELECT pg_advisory_xact_lock(hashtextextended('import ' || ?, 0))`, key); err != nil {
			return err
		}
	}
	keys, err := store.ScanAll[models.ImportKey](r.Tx, `
		SELECT k.* FROM import_keys k JOIN organizations o ON o.id = k.organization_id WHERE o.key = ?`, key)
	if err != nil {
		return err
	}
	assigned := r.file.assignedKeys()
	for _, k := range keys {
		kind, named := r.kinds[k.Key]
		if named && kind != k.Kind {
			r.problems.add("the key %q names a %s; in an earlier import it named a %s", k.Key, kind, k.Kind)
		}
		if named || assigned[k.Key] || k.Kind == keyOrganizationDefinition { // these are few
			r.stored[k.Kind] = append(r.stored[k.Kind], k.ID)
		}
		r.kinds[k.Key] = k.Kind
		r.result.IDs[k.Key] = k.ID
		r.known[k.Key] = true
	}
	return r.readDigests()
}

// readDigests reads what earlier imports left of the file's keys. Rows of another
// kind are of deleted entries, whose keys are free.
func (r *importRun) readDigests() error {
	named := models.TextArray(slices.Collect(maps.Keys(r.file.kinds)))
	for key := range r.file.assignedKeys() {
		named = append(named, key)
	}
	rows, err := store.ScanAll[models.ImportDigest](r.Tx, `
		SELECT d.* FROM import_digests d JOIN organizations o ON o.id = d.organization_id
		WHERE o.key = ? AND d.key = ANY (?)`, r.file.Organization.Key, named)
	for _, row := range rows {
		if row.Kind == r.kinds[row.Key] {
			r.imported[row.Key] = row.Digests
		}
	}
	return err
}

// readOrganizations reads the other organizations that the file may name, and which of
// them are service companies.
func (r *importRun) readOrganizations() error {
	key := r.file.Organization.Key
	var organizations []models.Organization
	if err := r.DB.Find(&organizations, "key = ANY (?)", append(r.file.organizationKeys(), key)).Error; err != nil {
		return err
	}
	for _, o := range organizations {
		r.companies[o.Key] = o.ID
	}
	if _, there := r.companies[key]; there && !r.known[key] {
		r.problems.add("there is an organization with the key %q that no import created", key)
	}
	companies, err := store.ScanAll[string](r.Tx, `
		SELECT s.company_id FROM service_companies s JOIN organizations o ON o.id = s.customer_id WHERE o.key = ?`, key)
	for _, id := range companies {
		r.isServiceCompany[id] = true
	}
	return err
}

// organizationKeys are the keys by which the file may name other organizations.
func (f *importFile) organizationKeys() models.TextArray {
	keys := models.TextArray{}
	for _, c := range f.ServiceCompanies {
		keys = append(keys, c.Key)
	}
	for _, a := range f.Assignments {
		keys = append(keys, a.Identity)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// assignedKeys are the keys that the file's assignments name: entries of this file or
// of an earlier one.
func (f *importFile) assignedKeys() map[string]bool {
	keys := map[string]bool{}
	for _, a := range f.Assignments {
		keys[a.Node.text], keys[a.Identity], keys[a.Definition] = true, true, true
	}
	return keys
}

// lookup returns the id that a key of this or an earlier file names, if it is of
// one of the kinds.
func (r *importRun) lookup(where, key string, kinds ...string) string {
	id, known := r.result.IDs[key]
	if !known || !slices.Contains(kinds, r.kinds[key]) {
		r.problems.add("%s: there is no %s %q", where, strings.Join(kinds, " or "), key)
		return ""
	}
	return id
}

// require reports a field without which nothing is created.
func require[T any](e *importEntry, name string, given *T) {
	if given == nil {
		e.run.problems.add("%s needs %s", e, name)
	}
}
