package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/mail"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/crypto/bcrypt"

	"millwright/models"
	"millwright/service/batch"
)

// Imported is what an import made or found; secrets only where this import set them.
type Imported struct {
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
// (contract, import): by key, so that a second run changes nothing; what the file
// leaves out stays as it was; all of it or nothing. The error is an *ImportError
// when the file is to blame.
func (s *Service) Import(ctx context.Context, text []byte) (Imported, error) {
	file, err := readImportFile(text)
	if err != nil {
		return Imported{}, err
	}
	var imported Imported
	err = s.write(ctx, func(ctx context.Context, t *tx) error {
		run := &importRun{
			tx: t, file: file, problems: &ImportError{}, known: map[string]bool{},
			result: Imported{IDs: map[string]string{}, Integrations: map[string]ImportedIntegration{}},
		}
		err := run.all(ctx)
		imported = run.result
		return err
	})
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && strings.HasPrefix(pg.Code, "23") {
		return Imported{}, &ImportError{[]string{fmt.Sprintf("the database refuses a row of %s (%s)", pg.TableName, pg.ConstraintName)}}
	}
	return imported, err
}

// importRun is one run of an import in its transaction.
type importRun struct {
	*tx
	file     *importFile
	problems *ImportError
	result   Imported
	// known holds the keys that an earlier import made.
	known map[string]bool
	// companies are the ids of service companies by their organization's key.
	companies map[string]string
	clients   map[string]string // client ids by integration id
	places    map[string][]int  // group webhook places by integration id
}

func (r *importRun) all(ctx context.Context) error {
	if err := r.load(ctx); err != nil {
		return err
	}
	steps := []func() error{
		r.organization, r.definitions, r.people, r.teams, r.inventory, r.forms, r.serviceCompanies,
		func() error { return r.integrations(ctx) }, r.assignments,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	if err := r.problems.orNil(); err != nil {
		return err
	}
	return r.Flush(ctx)
}

type importedKey struct {
	Key, Kind, ID string
}

// load reads what earlier imports made, under a lock that lets one import of an
// organization run at a time.
func (r *importRun) load(ctx context.Context) error {
	key := r.file.Organization.Key
	r.Queue(`SELECT pg_advisory_xact_lock(hashtextextended('import ' || $1, 0))`, key)
	var keys []importedKey
	batch.QueueAll(r.Tx, &keys, `
		SELECT k.key, k.kind, k.id FROM import_keys k JOIN organizations o ON o.id = k.organization_id WHERE o.key = $1`, key)
	var organizations []struct{ Key, ID string }
	batch.QueueAll(r.Tx, &organizations, `SELECT key, id FROM organizations`)
	var clients []struct{ ID, ClientID string }
	batch.QueueAll(r.Tx, &clients, `
		SELECT i.id, i.client_id FROM integrations i JOIN organizations o ON o.id = i.organization_id WHERE o.key = $1`, key)
	var places []struct {
		IntegrationID string
		Place         int
	}
	batch.QueueAll(r.Tx, &places, `
		SELECT h.integration_id, h.place FROM webhooks h JOIN organizations o ON o.id = h.organization_id WHERE o.key = $1`, key)
	if err := r.Flush(ctx); err != nil {
		return err
	}
	for _, k := range keys {
		if kind, named := r.file.kinds[k.Key]; named && kind != k.Kind {
			r.problems.add("the key %q names a %s; an earlier import made a %s of it", k.Key, kind, k.Kind)
		}
		r.file.kinds[k.Key] = k.Kind
		r.result.IDs[k.Key] = k.ID
		r.known[k.Key] = true
	}
	r.companies, r.clients, r.places = map[string]string{}, map[string]string{}, map[string][]int{}
	for _, o := range organizations {
		r.companies[o.Key] = o.ID
	}
	for _, c := range clients {
		r.clients[c.ID] = c.ClientID
	}
	for _, p := range places {
		r.places[p.IntegrationID] = append(r.places[p.IntegrationID], p.Place)
	}
	return nil
}

// id returns the id of the key, a new one the first time it is met.
func (r *importRun) id(key, kind string, prefix models.IDPrefix) (id string, created bool, err error) {
	if r.known[key] {
		return r.result.IDs[key], false, nil
	}
	if id, err = r.newID(prefix); err != nil {
		return "", false, err
	}
	r.result.IDs[key] = id
	if kind != keyOrganization {
		err = r.keep(key, kind, id)
	}
	return id, true, err
}

func (r *importRun) keep(key, kind, id string) error {
	return r.insert(&models.ImportKey{OrganizationID: r.result.OrganizationID, Key: key, Kind: kind, ID: id})
}

// of returns the id that a key of the file (or an earlier one) names, when it
// is of one of the kinds.
func (r *importRun) of(where, key string, kinds ...string) string {
	id, known := r.result.IDs[key]
	if !known || !slices.Contains(kinds, r.file.kinds[key]) {
		r.problems.add("%s: %q is no %s", where, key, strings.Join(kinds, " or "))
		return ""
	}
	return id
}

// need reports a field without which nothing new is made.
func need[T any](r *importRun, where, name string, value *T) (given T) {
	if value == nil {
		r.problems.add("%s needs %s", where, name)
		return given
	}
	return *value
}

func or[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}
	return *value
}

// columns are those a file gives for a row; nil pointers are left out.
type columns map[string]any

func given[T any](c columns, name string, value *T) {
	if value != nil {
		c[name] = *value
	}
}

// effects queues an UPDATE of the row that touches it only where a column
// differs. stamped tables get the time of the change.
func (r *importRun) change(table, id string, c columns, stamped bool) {
	sets, differs, args := c.assignments(id)
	if len(sets) == 0 {
		return
	}
	if stamped {
		args = append(args, r.at)
		sets = append(sets, fmt.Sprintf(laterThanBefore, len(args)))
	}
	idColumn := "id"
	if table == "plans" {
		idColumn = "organization_id"
	}
	r.Queue(`UPDATE `+table+` SET `+strings.Join(sets, ", ")+
		` WHERE `+idColumn+` = $1 AND (`+strings.Join(differs, " OR ")+`)`, args...)
}

// laterThanBefore sets changed_at to the time in parameter %d, and later than it was.
const laterThanBefore = `changed_at = greatest($%d, changed_at + interval '1 millisecond')`

// changePart is change for a row that is shown as a part of another: the whole
// changes with it.
func (r *importRun) changePart(table, id string, c columns, whole, wholeID string) {
	sets, differs, args := c.assignments(id)
	if len(sets) == 0 {
		return
	}
	args = append(args, wholeID, r.at)
	r.Queue(`WITH changed AS (UPDATE `+table+` SET `+strings.Join(sets, ", ")+
		` WHERE id = $1 AND (`+strings.Join(differs, " OR ")+`) RETURNING true)
		UPDATE `+whole+` SET `+fmt.Sprintf(laterThanBefore, len(args))+
		fmt.Sprintf(` WHERE id = $%d AND EXISTS (SELECT FROM changed)`, len(args)-1), args...)
}

// addPart says that the whole got a new part.
func (r *importRun) addPart(whole, wholeID string) {
	r.Queue(`UPDATE `+whole+` SET `+fmt.Sprintf(laterThanBefore, 2)+` WHERE id = $1 AND changed_at < $2`, wholeID, r.at)
}

// assignments returns the columns as SET clauses, as conditions that one of
// them differs, and the arguments of both behind the row's id.
func (c columns) assignments(id string) (sets, differs []string, args []any) {
	args = []any{id}
	for _, name := range slices.Sorted(maps.Keys(c)) {
		args = append(args, c[name])
		sets = append(sets, fmt.Sprintf("%s = $%d", name, len(args)))
		differs = append(differs, fmt.Sprintf("%s IS DISTINCT FROM $%d", name, len(args)))
	}
	return sets, differs, args
}

func (r *importRun) organization() error {
	o := r.file.Organization
	id, created, err := r.id(o.Key, keyOrganization, models.PrefixIdentity)
	if err != nil {
		return err
	}
	r.result.OrganizationID = id
	where := fmt.Sprintf("organization %q", o.Key)
	if !created {
		c := columns{}
		given(c, "read_only", o.ReadOnly)
		given(c, "suspended", o.Suspended)
		r.change("organizations", id, c, false)
		name := columns{}
		given(name, "name", o.Name)
		r.change("identities", id, name, true)
		if o.Plan != nil {
			plan := columns{}
			given(plan, "name", o.Plan.Name)
			given(plan, "api", o.Plan.API)
			given(plan, "manual_work_orders", o.Plan.ManualWorkOrders)
			given(plan, "calls_per_minute", o.Plan.CallsPerMinute)
			given(plan, "integrations", o.Plan.Integrations)
			r.change("plans", id, plan, false)
		}
		return nil
	}
	plan := need(r, where, "a plan", o.Plan)
	rows := []any{
		&models.Organization{ID: id, Key: o.Key, ReadOnly: or(o.ReadOnly, false), Suspended: or(o.Suspended, false), CreatedAt: r.at},
		r.identity(id, models.KindOrganization, need(r, where, "a name", o.Name)),
		&models.Plan{
			OrganizationID:   id,
			Name:             need(r, where, "plan.name", plan.Name),
			API:              or(plan.API, false),
			ManualWorkOrders: or(plan.ManualWorkOrders, false),
			CallsPerMinute:   need(r, where, "plan.calls_per_minute", plan.CallsPerMinute),
			Integrations:     need(r, where, "plan.integrations", plan.Integrations),
		},
	}
	for _, row := range rows {
		if err := r.insert(row); err != nil {
			return err
		}
	}
	r.Queue(`CREATE SEQUENCE work_order_numbers.` + pgx.Identifier{id}.Sanitize())
	return r.keep(o.Key, keyOrganization, id)
}

func (r *importRun) identity(id string, kind models.IdentityKind, name string) *models.Identity {
	return &models.Identity{
		ID: id, OrganizationID: r.result.OrganizationID, Kind: kind, Name: name, CreatedAt: r.at, ChangedAt: r.at,
	}
}

func (r *importRun) definitions() error {
	for _, d := range r.file.PermissionDefinitions {
		id, created, err := r.id(d.Key, keyDefinition, models.PrefixDefinition)
		if err != nil {
			return err
		}
		where := fmt.Sprintf("permission definition %q", d.Key)
		if created {
			if err := r.insert(&models.PermissionDefinition{
				ID: id, OrganizationID: r.result.OrganizationID, Name: need(r, where, "a name", d.Name),
				AppliesBelow: or(d.AppliesBelow, true), InventoryManager: or(d.InventoryManager, false), Grants: d.Grants,
			}); err != nil {
				return err
			}
			continue
		}
		c := columns{}
		given(c, "name", d.Name)
		given(c, "applies_below", d.AppliesBelow)
		given(c, "inventory_manager", d.InventoryManager)
		if d.Grants != nil {
			c["grants"] = d.Grants
		}
		r.change("permission_definitions", id, c, false)
	}
	for _, d := range r.file.OrganizationDefinitions {
		id, created, err := r.id(d.Key, keyOrganizationDefinition, models.PrefixDefinition)
		if err != nil {
			return err
		}
		where := fmt.Sprintf("organization permission definition %q", d.Key)
		if created {
			if err := r.insert(&models.OrganizationPermissionDefinition{
				ID: id, OrganizationID: r.result.OrganizationID, Name: need(r, where, "a name", d.Name), Grants: d.Grants,
			}); err != nil {
				return err
			}
			continue
		}
		c := columns{}
		given(c, "name", d.Name)
		if d.Grants != nil {
			c["grants"] = d.Grants
		}
		r.change("organization_permission_definitions", id, c, false)
	}
	return nil
}

// organizationDefinition returns the id of the named definition, nil where none is named.
func (r *importRun) organizationDefinition(where string, key *string) *string {
	if key == nil {
		return nil
	}
	id := r.of(where, *key, keyOrganizationDefinition)
	return &id
}

func (r *importRun) people() error {
	for _, p := range r.file.People {
		where := fmt.Sprintf("person %q", p.Key)
		id, created, err := r.id(p.Key, keyPerson, models.PrefixIdentity)
		if err != nil {
			return err
		}
		if p.Email != nil {
			if address, err := mail.ParseAddress(*p.Email); err != nil || address.Address != *p.Email {
				r.problems.add("%s: the e-mail address is malformed", where)
			}
		}
		definition := r.organizationDefinition(where, p.OrganizationDefinition)
		if created {
			var hash *string
			if p.Password != nil {
				hashed, err := bcrypt.GenerateFromPassword([]byte(*p.Password), bcrypt.DefaultCost)
				if err != nil {
					r.problems.add("%s: the password has more than 72 bytes", where)
				}
				text := string(hashed)
				hash = &text
			}
			if err := r.insert(r.identity(id, models.KindPerson, need(r, where, "a name", p.Name))); err != nil {
				return err
			}
			if err := r.insert(&models.Person{
				ID: id, OrganizationID: r.result.OrganizationID, Email: need(r, where, "an email", p.Email), Phone: p.Phone,
				PasswordHash: hash, Admin: or(p.Admin, false), OrganizationDefinitionID: definition,
			}); err != nil {
				return err
			}
			continue
		}
		name, c := columns{}, columns{}
		given(name, "name", p.Name)
		r.change("identities", id, name, true)
		given(c, "email", p.Email)
		given(c, "phone", p.Phone)
		given(c, "admin", p.Admin)
		given(c, "organization_definition_id", definition)
		r.changePart("people", id, c, "identities", id)
	}
	return nil
}

func (r *importRun) teams() error {
	for _, team := range r.file.Teams {
		where := fmt.Sprintf("team %q", team.Key)
		id, created, err := r.id(team.Key, keyTeam, models.PrefixIdentity)
		if err != nil {
			return err
		}
		if created {
			if err := r.insert(r.identity(id, models.KindTeam, need(r, where, "a name", team.Name))); err != nil {
				return err
			}
		} else {
			name := columns{}
			given(name, "name", team.Name)
			r.change("identities", id, name, true)
		}
		if team.Members == nil {
			continue
		}
		members := make([]string, len(team.Members))
		for i, key := range team.Members {
			members[i] = r.of(where, key, keyPerson)
		}
		r.Queue(`DELETE FROM team_members WHERE team_id = $1 AND member_id <> ALL ($2::text[])`, id, members)
		r.Queue(`INSERT INTO team_members (team_id, member_id, organization_id)
			SELECT $1, m, $3 FROM unnest($2::text[]) m ON CONFLICT DO NOTHING`, id, members, r.result.OrganizationID)
	}
	return nil
}

func (r *importRun) inventory() error {
	for _, n := range r.file.nodes {
		id, created, err := r.id(n.Key, keyNode, models.NodePrefixes[models.NodeKind(n.Kind)])
		if err != nil {
			return err
		}
		var parent *string
		if n.parent != "" {
			above := r.result.IDs[n.parent]
			parent = &above
		}
		where := fmt.Sprintf("inventory node %q", n.Key)
		if created {
			if err := r.insert(&models.InventoryNode{
				ID: id, OrganizationID: r.result.OrganizationID, Kind: models.NodeKind(n.Kind), ParentID: parent,
				Name: need(r, where, "a name", n.Name), Description: n.Description, ExternalID: n.ExternalID,
				CreatedAt: r.at, ChangedAt: r.at,
			}); err != nil {
				return err
			}
			continue
		}
		// The id carries the kind, so a node keeps it for ever.
		if !models.IsID(id, models.NodePrefixes[models.NodeKind(n.Kind)]) {
			r.problems.add("%s: a node cannot change its kind", where)
		}
		c := columns{"parent_id": parent}
		given(c, "name", n.Name)
		given(c, "description", n.Description)
		given(c, "external_id", n.ExternalID)
		r.change("inventory_nodes", id, c, true)
	}
	return nil
}

func (r *importRun) forms() error {
	for _, form := range r.file.Forms {
		id, created, err := r.id(form.Key, keyForm, models.PrefixForm)
		if err != nil {
			return err
		}
		if created {
			if err := r.insert(&models.Form{
				ID: id, OrganizationID: r.result.OrganizationID,
				Name: need(r, fmt.Sprintf("form %q", form.Key), "a name", form.Name), CreatedAt: r.at, ChangedAt: r.at,
			}); err != nil {
				return err
			}
		} else {
			name := columns{}
			given(name, "name", form.Name)
			r.change("forms", id, name, true)
		}
		for position, q := range form.Questions {
			if err := r.question(id, position, q); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *importRun) question(formID string, position int, q importQuestion) error {
	where := fmt.Sprintf("question %q", q.Key)
	id, created, err := r.id(q.Key, keyQuestion, models.PrefixQuestion)
	if err != nil {
		return err
	}
	if created {
		r.addPart("forms", formID)
		if err := r.insert(&models.Question{
			ID: id, FormID: formID, Position: position, Label: need(r, where, "a label", q.Label),
			Type: models.QuestionType(q.Type), Required: or(q.Required, false),
		}); err != nil {
			return err
		}
	} else {
		c := columns{"position": position, "type": q.Type, "form_id": formID}
		given(c, "label", q.Label)
		given(c, "required", q.Required)
		r.changePart("questions", id, c, "forms", formID)
	}
	for i, o := range q.Options {
		option, created, err := r.id(o.Key, keyOption, models.PrefixOption)
		if err != nil {
			return err
		}
		if created {
			r.addPart("forms", formID)
			if err := r.insert(&models.QuestionOption{
				ID: option, QuestionID: id, Position: i, Label: need(r, fmt.Sprintf("option %q", o.Key), "a label", o.Label),
			}); err != nil {
				return err
			}
			continue
		}
		c := columns{"position": i, "question_id": id}
		given(c, "label", o.Label)
		r.changePart("question_options", option, c, "forms", formID)
	}
	return nil
}

func (r *importRun) serviceCompanies() error {
	for _, c := range r.file.ServiceCompanies {
		company, known := r.companies[c.Key]
		if !known || company == r.result.OrganizationID {
			r.problems.add("service company %q: there is no other organization with this key; import it first", c.Key)
			continue
		}
		r.Queue(`INSERT INTO service_companies (customer_id, company_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
			r.result.OrganizationID, company)
	}
	return nil
}

func (r *importRun) assignments() error {
	for _, a := range r.file.Assignments {
		where := fmt.Sprintf("assignment of %q on %q", a.Identity, a.Node)
		node := r.of(where, a.Node, keyNode)
		definition := r.of(where, a.Definition, keyDefinition)
		identity, company := r.companies[a.Identity]
		if !company || r.file.kinds[a.Identity] != "" {
			identity = r.of(where, a.Identity, keyPerson, keyTeam, keyIntegration, keyOrganization)
		}
		r.Queue(`
			INSERT INTO assignments AS a (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $3, $4)
			ON CONFLICT (node_id, identity_id) DO UPDATE SET definition_id = excluded.definition_id
			WHERE a.definition_id <> excluded.definition_id`, node, identity, definition, r.result.OrganizationID)
	}
	return nil
}
