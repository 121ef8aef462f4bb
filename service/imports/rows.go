package imports

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"millwright/models"
	"millwright/service/people"
	"millwright/service/webhooks"
)

// importBatchSize is the number of rows that one statement of an import writes: Postgres
// takes at most 65535 parameters.
const importBatchSize = 500

// importRows are the rows an import writes, in the order of their foreign keys.
type importRows struct {
	organizations           importTable[models.Organization]
	organizationDefinitions importTable[models.OrganizationPermissionDefinition]
	permissionDefinitions   importTable[models.PermissionDefinition]
	identities              importTable[models.Identity]
	plans                   importTable[models.Plan]
	persons                 importTable[models.Person]
	nodes                   importTable[models.InventoryNode]
	formRows                importTable[models.Form]
	questions               importTable[models.Question]
	options                 importTable[models.QuestionOption]
	integrations            importTable[models.Integration]
	webhooks                importTable[models.Webhook]

	serviceCompanyRows []models.ServiceCompany
	teamMembers        teamMembers
	assignmentRows     []importedAssignment
	keys               []models.ImportKey
	// taken holds the slots of webhook addresses by integration.
	taken map[string][]int
}

// importTable holds the rows of one table that an import creates or changes.
type importTable[T any] struct {
	// stored are the rows before the import, by id.
	stored map[string]T
	rows   []*importRow[T]
	byID   map[string]*importRow[T]
}

// current returns the row with the id as the import leaves it.
func (t *importTable[T]) current(id string) T {
	if named := t.byID[id]; named != nil {
		return named.row
	}
	return t.stored[id]
}

// importRow is a row as the file has it.
type importRow[T any] struct {
	id  string
	row T
	// touched is set if what is shown as a part of the row has changed.
	touched bool
}

// read reads the rows with the ids, and locks them so that no change of them is
// overwritten.
func (t *importTable[T]) read(r *importRun, ids ...[]string) error {
	t.stored, t.byID = map[string]T{}, map[string]*importRow[T]{}
	wanted := models.TextArray(slices.Concat(ids...))
	if len(wanted) == 0 {
		return nil
	}
	model := &gorm.Statement{DB: r.DB}
	if err := model.Parse(new(T)); err != nil {
		return err
	}
	key := model.Schema.PrioritizedPrimaryField
	var rows []T
	db := r.DB
	if r.mode != importComparing {
		db = db.Clauses(clause.Locking{Strength: "NO KEY UPDATE"})
	}
	err := db.Where(key.DBName+" = ANY (?)", wanted).Order(key.DBName).Find(&rows).Error
	for _, row := range rows {
		t.stored[reflect.ValueOf(row).FieldByIndex(key.StructField.Index).String()] = row
	}
	return err
}

// row returns the row with the id for the import to fill in: as it is stored, or an
// empty one to create.
func (t *importTable[T]) row(id string) (row *T, created bool) {
	stored, known := t.stored[id]
	added := &importRow[T]{id: id, row: stored}
	t.rows = append(t.rows, added)
	t.byID[id] = added
	return &added.row, !known
}

// ids returns the ids of the rows, sorted like the file.
func (t *importTable[T]) ids() []string {
	ids := make([]string, len(t.rows))
	for i, r := range t.rows {
		ids[i] = r.id
	}
	return ids
}

// changed reports whether the row is new or different from what is stored.
func (t *importTable[T]) changed(id string) bool {
	stored, known := t.stored[id]
	return !known || !reflect.DeepEqual(stored, t.byID[id].row)
}

// touch makes the row count as changed.
func (t *importTable[T]) touch(id string) { t.byID[id].touched = true }

// save inserts the new rows and updates the changed ones, in the order of the file:
// nodes come after their parents. touch, which may be nil, is called for each row
// that is updated.
func (t *importTable[T]) save(db *gorm.DB, touch func(*T)) error {
	var rows []*T
	for _, r := range t.rows {
		if !r.touched && !t.changed(r.id) {
			continue
		}
		if _, known := t.stored[r.id]; known && touch != nil {
			touch(&r.row)
		}
		rows = append(rows, &r.row)
	}
	return upsert(db, rows)
}

// vacate replaces, where the import changes it, the stored value of a unique column by the
// row's id, which no other row has: Postgres checks uniqueness row by row, so a row could
// not take a value before its holder got another.
func (t *importTable[T]) vacate(r *importRun, table, column string, value func(*T) string) error {
	ids := models.TextArray{}
	for _, added := range t.rows {
		if stored, known := t.stored[added.id]; known && value(&stored) != value(&added.row) {
			ids = append(ids, added.id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return r.Exec(`UPDATE `+table+` SET `+column+` = id || '@import' WHERE id = ANY (?)`, ids)
}

// upsert inserts the rows in batches, or updates those whose primary key is there.
func upsert[T any](db *gorm.DB, rows []T) error {
	return create(db.Clauses(clause.OnConflict{UpdateAll: true}), rows)
}

// create inserts the rows in batches.
func create[T any](db *gorm.DB, rows []T) error {
	if len(rows) == 0 {
		return nil
	}
	return db.CreateInBatches(rows, importBatchSize).Error
}

// readRows reads the rows of the file's keys. It locks them in the order in which
// other writes do: the plan, then integrations, their addresses and identities.
func (r *importRun) readRows() error {
	s := r.stored
	for _, read := range []func() error{
		func() error { return r.plans.read(r, s[keyOrganization]) },
		func() error { return r.integrations.read(r, s[keyIntegration]) },
		func() error { return r.webhooks.read(r, s[keyWebhook]) },
		func() error {
			return r.identities.read(r, s[keyOrganization], s[keyPerson], s[keyTeam], s[keyIntegration])
		},
		func() error { return r.organizations.read(r, s[keyOrganization]) },
		func() error { return r.permissionDefinitions.read(r, s[keyDefinition]) },
		func() error { return r.organizationDefinitions.read(r, s[keyOrganizationDefinition]) },
		func() error { return r.persons.read(r, s[keyPerson]) },
		func() error { return r.nodes.read(r, s[keyNode]) },
		func() error { return r.formRows.read(r, s[keyForm]) },
		func() error { return r.questions.read(r, s[keyQuestion]) },
		func() error { return r.options.read(r, s[keyOption]) },
		r.readSlots, r.readTeamMembers, r.readOrganizations,
	} {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// save writes everything in the order of the foreign keys.
func (r *importRun) save() error {
	touchIdentity := func(i *models.Identity) { i.ChangedAt = r.At.After(i.ChangedAt) }
	touchNode := func(n *models.InventoryNode) { n.ChangedAt = r.At.After(n.ChangedAt) }
	touchForm := func(f *models.Form) { f.ChangedAt = r.At.After(f.ChangedAt) }
	for i := range r.keys {
		r.keys[i].OrganizationID = r.result.OrganizationID
	}
	for _, save := range []func() error{
		func() error { return r.organizations.save(r.DB, nil) },
		r.signOutSuspended,
		func() error { return r.organizationDefinitions.save(r.DB, nil) },
		func() error { return r.permissionDefinitions.save(r.DB, nil) },
		func() error { return r.identities.save(r.DB, touchIdentity) },
		func() error { return r.plans.save(r.DB, nil) },
		r.createNumberSequence,
		func() error {
			return r.persons.vacate(r, "people", "folded_email", func(p *models.Person) string { return p.Email })
		},
		func() error { return r.persons.save(r.DB, nil) },
		r.signOutChanged, r.endSharedSignIn,
		r.saveTeamMembers,
		func() error { return r.nodes.save(r.DB, touchNode) },
		func() error { return r.formRows.save(r.DB, touchForm) },
		func() error { return r.questions.save(r.DB, nil) },
		func() error { return r.options.save(r.DB, nil) },
		func() error { return r.savePositions("questions", "form_id", r.formRows.ids(), r.questions.ids()) },
		func() error {
			return r.savePositions("question_options", "question_id", r.questions.ids(), r.options.ids())
		},
		func() error { return create(r.DB.Clauses(clause.OnConflict{DoNothing: true}), r.serviceCompanyRows) },
		func() error { // the relation with a company that the file names holds again
			return r.Exec(`DELETE FROM ended_relations e USING service_companies s
				WHERE s.customer_id = ? AND e.customer_id = s.customer_id AND e.company_id = s.company_id`, r.result.OrganizationID)
		},
		func() error {
			return r.integrations.vacate(r, "integrations", "client_id", func(i *models.Integration) string { return i.ClientID })
		},
		func() error { return r.integrations.save(r.DB, nil) },
		func() error { return people.EndOwnership(r.Tx, r.result.OrganizationID) },
		func() error { return r.webhooks.save(r.DB, nil) },
		func() error { return webhooks.StartAddresses(r.Tx, r.result.OrganizationID) },
		r.holdOrSendAgain,
		r.saveAssignments,
		func() error { return create(r.DB, r.keys) },
		r.saveDigests, r.notifyAccess, r.log,
	} {
		if err := save(); err != nil {
			return err
		}
	}
	return nil
}
