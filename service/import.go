package service

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
)

// ImportResult names what an import created or found. Secrets are included only where
// this import set them.
type ImportResult struct {
	OrganizationID string                         `json:"organization_id"`
	IDs            map[string]string              `json:"ids"`
	Integrations   map[string]ImportedIntegration `json:"integrations"`
}

// ImportedIntegration is an integration of an import.
type ImportedIntegration struct {
	ClientID     string                     `json:"client_id"`
	ClientSecret string                     `json:"client_secret,omitempty"`
	IdentityID   string                     `json:"identity_id"`
	Webhooks     map[string]ImportedWebhook `json:"webhooks"`
}

// ImportedWebhook is a webhook address of an import.
type ImportedWebhook struct {
	ID     string `json:"id"`
	Secret string `json:"secret,omitempty"`
}

// Import creates or updates one organization with everything the app would hold
// (docs/contract.md, Import), in one transaction. Rows are found by the file's keys,
// so a second run changes nothing; what the file leaves out keeps its value. The
// error is an *ImportError if the file is to blame.
func (s *Service) Import(ctx context.Context, text []byte) (ImportResult, error) {
	file, err := readImportFile(text)
	if err != nil {
		return ImportResult{}, err
	}
	var imported ImportResult
	err = s.transaction(ctx, file.Organization.Key, func(t *ormTx) error {
		run := &importRun{
			ormTx: t, file: file, kinds: maps.Clone(file.kinds), problems: &ImportError{},
			known: map[string]bool{}, stored: map[string][]string{},
			result: ImportResult{IDs: map[string]string{}, Integrations: map[string]ImportedIntegration{}},
		}
		if err := t.limit(importTimeout, importTimeout); err != nil {
			return err
		}
		err := run.run(ctx)
		imported = run.result
		return err
	})
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && strings.HasPrefix(pg.Code, "23") {
		return ImportResult{}, &ImportError{[]string{fmt.Sprintf("the database rejects a row of %s (%s)", pg.TableName, pg.ConstraintName)}}
	}
	return imported, err
}

// importTimeout bounds each statement of an import and its wait for another import of
// the organization. A large file takes longer than other rare writes.
const importTimeout = 10 * time.Minute

// importRun is one run of an import in its transaction: it reads the rows that
// earlier imports created, changes and adds to them what the file says, and saves
// those that are new or different.
type importRun struct {
	*ormTx
	file     *importFile
	problems *ImportError
	result   ImportResult
	// kinds is what each key names, in the file or in an earlier import.
	kinds map[string]string
	// known holds the keys of earlier imports.
	known map[string]bool
	// stored holds the ids that earlier imports gave to the file's keys, by kind of key.
	stored map[string][]string
	// companies are the ids of other organizations by their key.
	companies map[string]string
	// passwords are the hashes for new people by their key.
	passwords map[string]string
	importRows
}

// run imports the file. Nothing is written before everything was checked: a
// transaction that has written holds back the sync pages of all organizations.
func (r *importRun) run(ctx context.Context) error {
	if err := r.readKeys(); err != nil {
		return err
	}
	if err := r.hashPasswords(ctx); err != nil {
		return err
	}
	if err := r.readRows(); err != nil {
		return err
	}
	for _, merge := range []func() error{
		r.organization, r.definitions, r.people, r.teams, r.inventory, r.forms, r.serviceCompanies,
		func() error { return r.importIntegrations(ctx) }, r.assignments,
	} {
		if err := merge(); err != nil {
			return err
		}
	}
	if err := r.problems.orNil(); err != nil {
		return err
	}
	return r.save()
}

// readKeys reads what earlier imports created, under a lock that lets one import of
// an organization run at a time.
func (r *importRun) readKeys() error {
	key := r.file.Organization.Key
	if err := r.exec(`SELECT pg_advisory_xact_lock(hashtextextended('import ' || ?, 0))`, key); err != nil {
		return err
	}
	keys, err := scanAll[models.ImportKey](r.ormTx, `
		SELECT k.* FROM import_keys k JOIN organizations o ON o.id = k.organization_id WHERE o.key = ?`, key)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if kind, named := r.kinds[k.Key]; named {
			r.stored[k.Kind] = append(r.stored[k.Kind], k.ID)
			if kind != k.Kind {
				r.problems.add("the key %q names a %s; in an earlier import it named a %s", k.Key, kind, k.Kind)
			}
		}
		r.kinds[k.Key] = k.Kind
		r.result.IDs[k.Key] = k.ID
		r.known[k.Key] = true
	}
	companies, err := scanAll[models.Organization](r.ormTx, `SELECT * FROM organizations WHERE key = ANY (?)`, r.file.organizationKeys())
	r.companies = map[string]string{}
	for _, o := range companies {
		r.companies[o.Key] = o.ID
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

// id returns the id of the key, a new one if no earlier import had the key.
func (r *importRun) id(key, kind string, prefix models.IDPrefix) (string, error) {
	if r.known[key] {
		return r.result.IDs[key], nil
	}
	id, err := r.newID(prefix)
	if err != nil {
		return "", err
	}
	r.result.IDs[key] = id
	r.keys = append(r.keys, models.ImportKey{Key: key, Kind: kind, ID: id})
	return id, nil
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
func require[T any](r *importRun, where, name string, given *T) {
	if given == nil {
		r.problems.add("%s needs %s", where, name)
	}
}

// overwrite sets the field if a value is given.
func overwrite[T any](field, given *T) {
	if given != nil {
		*field = *given
	}
}

// overwriteList sets the list if one is given, unless it is the same.
func overwriteList(field *models.TextArray, given []string) {
	if given != nil && !slices.Equal(*field, given) {
		*field = given
	}
}
