package imports

import (
	"millwright/models"
	"millwright/service/integrations"
)

func (r *importRun) organization() error {
	o := r.file.Organization
	e, err := r.entry(o.Key, keyOrganization, models.PrefixIdentity)
	if err != nil {
		return err
	}
	r.result.OrganizationID = e.id
	row, created := rowOf(e, &r.organizations)
	if created {
		*row = models.Organization{ID: e.id, Key: o.Key, CreatedAt: r.At}
	}
	setField(e, "read_only", &row.ReadOnly, o.ReadOnly)
	setField(e, "suspended", &row.Suspended, o.Suspended)
	r.identity(e, models.KindOrganization, o.Name)
	r.plan(e, o.Plan)
	return nil
}

func (r *importRun) plan(e *importEntry, given *importPlan) {
	row, created := rowOf(e, &r.plans)
	if created {
		row.OrganizationID = e.id
		require(e, "a plan", given)
	}
	if given == nil {
		return
	}
	if created {
		require(e, "plan.name", given.Name)
		require(e, "plan.calls_per_minute", given.CallsPerMinute)
		require(e, "plan.integrations", given.Integrations)
	}
	setField(e, "plan.name", &row.Name, given.Name)
	setField(e, "plan.api", &row.API, given.API)
	setField(e, "plan.manual_work_orders", &row.ManualWorkOrders, given.ManualWorkOrders)
	setField(e, "plan.calls_per_minute", &row.CallsPerMinute, given.CallsPerMinute)
	setField(e, "plan.integrations", &row.Integrations, given.Integrations)
}

// holdOrSendAgain has deliveries held, or sent again, if the import decides so for the whole
// organization.
func (r *importRun) holdOrSendAgain() error {
	id := r.result.OrganizationID
	organization, known := r.organizations.stored[id]
	if !known || organization.Suspended == r.organizations.byID[id].row.Suspended && r.plans.stored[id].API == r.plans.byID[id].row.API {
		return nil
	}
	return integrations.HoldOrSendAgain(r.Tx, id, "")
}

// createNumberSequence creates the sequence of a new organization's work order numbers.
func (r *importRun) createNumberSequence() error {
	id := r.result.OrganizationID
	if _, known := r.organizations.stored[id]; known {
		return nil
	}
	return r.Exec(`SELECT work_order_numbers.create_for($1)`, id)
}

// identity fills in the identity of an organization, a person, a team or an integration.
func (r *importRun) identity(e *importEntry, kind models.IdentityKind, name *string) {
	row, created := rowOf(e, &r.identities)
	if created {
		*row = models.Identity{ID: e.id, OrganizationID: r.result.OrganizationID, Kind: kind, CreatedAt: r.At, ChangedAt: r.At}
		require(e, "a name", name)
	}
	changed := setField(e, "name", &row.Name, name)
	if kind == models.KindPerson {
		changed.hide()
	}
}

func (r *importRun) serviceCompanies() error {
	for _, c := range r.file.ServiceCompanies {
		company, known := r.companies[c.Key]
		if !known || company == r.result.OrganizationID {
			r.problems.add("service company %q: there is no other organization with this key; import it first", c.Key)
			continue
		}
		var stored *string
		if r.isServiceCompany[company] {
			stored = &company
		}
		r.entryOf[r.file.Organization.Key].relate(fieldServiceCompany+company, fieldServiceCompany+c.Key, stored, company).names()
		r.isServiceCompany[company] = true
		r.serviceCompanyRows = append(r.serviceCompanyRows, models.ServiceCompany{CustomerID: r.result.OrganizationID, CompanyID: company})
	}
	return nil
}
