package service

import (
	"fmt"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

func (r *importRun) organization() error {
	o := r.file.Organization
	id, err := r.id(o.Key, keyOrganization, models.PrefixIdentity)
	if err != nil {
		return err
	}
	r.result.OrganizationID = id
	where := fmt.Sprintf("organization %q", o.Key)
	row, created := r.organizations.row(id)
	if created {
		*row = models.Organization{ID: id, Key: o.Key, CreatedAt: r.at}
	}
	overwrite(&row.ReadOnly, o.ReadOnly)
	overwrite(&row.Suspended, o.Suspended)
	r.identity(where, id, models.KindOrganization, o.Name)
	r.plan(where, id, o.Plan)
	return nil
}

func (r *importRun) plan(where, organizationID string, given *importPlan) {
	row, created := r.plans.row(organizationID)
	if created {
		row.OrganizationID = organizationID
		require(r, where, "a plan", given)
	}
	if given == nil {
		return
	}
	if created {
		require(r, where, "plan.name", given.Name)
		require(r, where, "plan.calls_per_minute", given.CallsPerMinute)
		require(r, where, "plan.integrations", given.Integrations)
	}
	overwrite(&row.Name, given.Name)
	overwrite(&row.API, given.API)
	overwrite(&row.ManualWorkOrders, given.ManualWorkOrders)
	overwrite(&row.CallsPerMinute, given.CallsPerMinute)
	overwrite(&row.Integrations, given.Integrations)
}

// createNumberSequence creates the sequence of a new organization's work order numbers.
func (r *importRun) createNumberSequence() error {
	id := r.result.OrganizationID
	if _, known := r.organizations.stored[id]; known {
		return nil
	}
	return r.exec(`CREATE SEQUENCE work_order_numbers.` + pgx.Identifier{id}.Sanitize())
}

// identity fills in the identity of an organization, a person, a team or an integration.
func (r *importRun) identity(where, id string, kind models.IdentityKind, name *string) {
	row, created := r.identities.row(id)
	if created {
		*row = models.Identity{ID: id, OrganizationID: r.result.OrganizationID, Kind: kind, CreatedAt: r.at, ChangedAt: r.at}
		require(r, where, "a name", name)
	}
	overwrite(&row.Name, name)
}

func (r *importRun) serviceCompanies() error {
	for _, c := range r.file.ServiceCompanies {
		company, known := r.companies[c.Key]
		if !known || company == r.result.OrganizationID {
			r.problems.add("service company %q: there is no other organization with this key; import it first", c.Key)
			continue
		}
		r.serviceCompanyRows = append(r.serviceCompanyRows, models.ServiceCompany{CustomerID: r.result.OrganizationID, CompanyID: company})
	}
	return nil
}
