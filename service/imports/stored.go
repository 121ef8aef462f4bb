package imports

import (
	"slices"

	"millwright/models"
	"millwright/service/store"
)

// checkStored checks the rows that the import would save against those that are
// stored, as the schema's constraints do.
func (r *importRun) checkStored() error {
	if err := r.problems.orNil(); err != nil {
		return err // the rows are not complete
	}
	for _, check := range []func() error{r.checkRoom, r.checkAdministrators, r.checkEmails, r.checkClientIDs, r.checkPositions, r.checkAnswered} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkRoom reports that the plan does not allow the new integrations (api.md
// 8.1). An organization that already has more keeps them.
func (r *importRun) checkRoom() error {
	var created []string
	for _, i := range r.file.Integrations {
		if !r.known[i.Key] {
			created = append(created, i.Key)
		}
	}
	if len(created) == 0 {
		return nil
	}
	// The plan is locked, so that a creation at the same time does not take the place.
	var held int64
	err := r.DB.Model(&models.Integration{}).Where("organization_id = ? AND deleted_at IS NULL", r.result.OrganizationID).Count(&held).Error
	allowed := r.plans.byID[r.result.OrganizationID].row.Integrations
	if free := max(0, allowed-int(held)); len(created) > free {
		r.problems.add("integration %q: the plan allows %d integrations", created[free], allowed)
	}
	return err
}

// checkAdministrators reports that the organization would lose its last administrator. Its
// row is locked, so that a change in the console at the same time takes away no other.
func (r *importRun) checkAdministrators() error {
	administers := func(p models.Person) bool { return p.Admin && p.DeactivatedAt == nil }
	ids, lost, kept := models.TextArray{}, false, false
	for _, p := range r.file.People {
		id := r.result.IDs[p.Key]
		ids = append(ids, id)
		kept = kept || administers(r.persons.byID[id].row)
		lost = lost || administers(r.persons.stored[id])
	}
	if !lost || kept {
		return nil
	}
	others, err := store.ScanOne[int](r.Tx, nil, `SELECT count(*) FROM people
		WHERE organization_id = ? AND admin AND deactivated_at IS NULL AND NOT id = ANY (?)`, r.result.OrganizationID, ids)
	if err == nil && others == 0 {
		r.problems.add("organization %q: it would have no administrator; one always remains", r.file.Organization.Key)
	}
	return err
}

// checkEmails reports e-mail addresses that two people of the organization would have.
func (r *importRun) checkEmails() error {
	ids, emails := models.TextArray{}, models.TextArray{}
	for _, p := range r.file.People {
		id := r.result.IDs[p.Key]
		ids, emails = append(ids, id), append(emails, models.Fold(r.persons.byID[id].row.Email))
	}
	taken, err := store.ScanAll[string](r.Tx, `
		WITH wanted AS (SELECT id, email FROM unnest(?::text[], ?::text[]) u (id, email)),
		held AS (SELECT * FROM wanted UNION ALL
			SELECT id, folded_email FROM people WHERE organization_id = ? AND NOT id = ANY (?))
		SELECT DISTINCT w.id FROM wanted w JOIN held h ON h.email = w.email AND h.id <> w.id`,
		ids, emails, r.result.OrganizationID, ids)
	for _, p := range r.file.People {
		if slices.Contains(taken, r.result.IDs[p.Key]) {
			r.problems.add("person %q: another person has the e-mail address", p.Key)
		}
	}
	return err
}

// checkClientIDs reports client ids that another integration has, of whichever organization.
func (r *importRun) checkClientIDs() error {
	given, ids := models.TextArray{}, models.TextArray{}
	holder := map[string]string{}
	for _, i := range r.file.Integrations {
		ids = append(ids, r.result.IDs[i.Key])
		if i.ClientID == nil {
			continue
		}
		if _, twice := holder[*i.ClientID]; twice {
			r.problems.add("integration %q: another integration has the client_id", i.Key)
		}
		holder[*i.ClientID] = i.Key
		given = append(given, *i.ClientID)
	}
	taken, err := store.ScanAll[string](r.Tx, `
		SELECT client_id FROM integrations WHERE client_id = ANY (?) AND NOT id = ANY (?) ORDER BY client_id`, given, ids)
	for _, clientID := range taken {
		r.problems.add("integration %q: another integration has the client_id", holder[clientID])
	}
	return err
}

// checkPositions reports forms and questions of which the file lists some but not all
// questions or options that imports made: those it leaves out hold positions of the listed ones.
func (r *importRun) checkPositions() error {
	listed := map[string]int{}
	for _, form := range r.file.Forms {
		listed[r.result.IDs[form.Key]] = len(form.Questions)
		for _, q := range form.Questions {
			listed[r.result.IDs[q.Key]] = len(q.Options)
		}
	}
	type child struct {
		Parent, ID string
		Position   int
	}
	children, err := store.ScanAll[child](r.Tx, `
		SELECT * FROM (SELECT form_id AS parent, id, position FROM questions WHERE form_id = ANY (?)
			UNION ALL SELECT question_id, id, position FROM question_options WHERE question_id = ANY (?)) c
		WHERE EXISTS (SELECT FROM import_keys k WHERE k.id = c.id)`,
		models.TextArray(r.stored[keyForm]), models.TextArray(r.stored[keyQuestion]))
	incomplete := map[string]bool{}
	for _, c := range children {
		if r.questions.byID[c.ID] == nil && r.options.byID[c.ID] == nil && c.Position < listed[c.Parent] {
			incomplete[c.Parent] = true
		}
	}
	for _, e := range r.entries {
		if incomplete[e.id] {
			r.problems.add("%s: the file must list all that it has", e)
		}
	}
	return err
}
