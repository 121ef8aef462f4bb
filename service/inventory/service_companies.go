package inventory

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
)

// ServiceCompany is a service company of an organization, with what it has there.
type ServiceCompany struct {
	ID, Name string
	// Nodes are those that it is assigned to, WorkOrders those in process that it has, each up
	// to models.MaxCounted.
	Nodes, WorkOrders int
	// Listed are the first of the work orders that the administrator may read.
	Listed []ListedWorkOrder `db:"-"`
}

// ListedWorkOrder is a work order in a short list: of a service company, a person or a form.
type ListedWorkOrder struct {
	ID     string
	Number int64
	Title  string
	Status models.WorkOrderStatus
}

const (
	// companiesQuery counts by index and stops at the limit.
	companiesQuery = `
	SELECT s.company_id AS id, i.name,
		(SELECT count(*) FROM (SELECT FROM assignments WHERE identity_id = s.company_id AND organization_id = s.customer_id LIMIT @max) x) AS nodes,
		(SELECT count(*) FROM (` + companyWorkOrders + `) x) AS work_orders
	FROM service_companies s JOIN identities i ON i.id = s.company_id
	WHERE s.customer_id = @organization AND (@company = '' OR s.company_id = @company) ORDER BY i.sort_key, s.company_id`

	// companyWorkOrders selects the customer's work orders in process that the company s has.
	companyWorkOrders = `SELECT w.id, w.number, w.title, w.status FROM work_order_assignees x CROSS JOIN LATERAL (SELECT * FROM work_orders WHERE id = x.work_order_id LIMIT 1) w
		WHERE x.identity_id = s.company_id AND NOT x.closed AND w.organization_id = s.customer_id ORDER BY x.work_order_id LIMIT @max`
)

// listedQuery selects the first work orders of the company @company that the administrator @actor may read.
var listedQuery = `
	SELECT x.* FROM (SELECT @organization::text AS customer_id, @company::text AS company_id) s CROSS JOIN LATERAL (` + companyWorkOrders + `) x
	CROSS JOIN LATERAL (SELECT * FROM work_orders WHERE id = x.id LIMIT 1) w
	WHERE ` + access.ReadableWorkOrder("w", "@actor") + ` ORDER BY x.id LIMIT 10`

// ServiceCompanies returns the service companies of the administrator's organization. Errors:
// permission_denied, unavailable.
func (s *Inventory) ServiceCompanies(ctx context.Context, actor store.Actor) ([]ServiceCompany, error) {
	return s.serviceCompanies(ctx, actor, "")
}

// ServiceCompany returns one service company with the first of its work orders. Errors:
// not_found, permission_denied, unavailable.
func (s *Inventory) ServiceCompany(ctx context.Context, actor store.Actor, id string) (ServiceCompany, error) {
	if !models.IsID(id, models.PrefixIdentity) {
		return ServiceCompany{}, models.NotFound()
	}
	found, err := s.serviceCompanies(ctx, actor, id)
	if err == nil && len(found) == 0 {
		err = models.NotFound()
	}
	if err != nil {
		return ServiceCompany{}, err
	}
	return found[0], nil
}

func (s *Inventory) serviceCompanies(ctx context.Context, actor store.Actor, id string) ([]ServiceCompany, error) {
	var found []ServiceCompany
	var listed []ListedWorkOrder
	var is struct{ Admin bool }
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		args := pgx.NamedArgs{"actor": actor.IdentityID, "organization": actor.OrganizationID, "company": id, "max": models.MaxCounted}
		store.QueueOne(pipeline, &is, models.NotFound(), `SELECT `+access.IsAdmin("@actor", "@organization")+` AS admin`, args)
		store.QueueAll(pipeline, &found, companiesQuery, args)
		if id != "" {
			store.QueueAll(pipeline, &listed, listedQuery, args)
		}
		return nil
	}, func() ([]ServiceCompany, error) {
		if !is.Admin {
			return nil, errEndsNoRelations()
		}
		if id != "" && len(found) > 0 {
			found[0].Listed = listed
		}
		return found, nil
	})
}

// EndServiceCompany ends the relation of the administrator's organization with a service
// company (docs/console.md, One work order): from now on the company reads none of its work orders and is
// assigned to none of its nodes. Housekeeping takes its work orders in process back. Errors:
// not_found, permission_denied, unavailable.
func (s *Inventory) EndServiceCompany(ctx context.Context, actor store.Actor, key store.Key, id string) error {
	if !models.IsID(id, models.PrefixIdentity) {
		return models.NotFound()
	}
	return s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) error {
		if err := requireAdmin(t, actor, errEndsNoRelations()); err != nil {
			return err
		}
		ended := t.DB.Delete(&models.ServiceCompany{}, "customer_id = ? AND company_id = ?", actor.OrganizationID, id)
		if ended.Error == nil && ended.RowsAffected == 0 {
			return models.NotFound()
		}
		if ended.Error != nil {
			return ended.Error
		}
		if err := t.DB.Delete(&models.Assignment{}, "organization_id = ? AND identity_id = ?", actor.OrganizationID, id).Error; err != nil {
			return err
		}
		if err := t.DB.Create(&models.EndedRelation{CompanyID: id, CustomerID: actor.OrganizationID, ActorID: actor.IdentityID, EndedAt: t.At}).Error; err != nil {
			return err
		}
		return t.Log(actor, actor.OrganizationID, "organization.company_ended", id)
	})
}

func errEndsNoRelations() error {
	return models.Errorf(models.CodePermissionDenied, "Only administrators see service companies and end the relation with one.")
}
