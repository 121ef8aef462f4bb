package people

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
)

// OrganizationRecord is an organization as operators see it.
type OrganizationRecord struct {
	ID        string     `json:"id"`
	Key       string     `json:"key"`
	Name      string     `json:"name"`
	Plan      PlanRecord `json:"plan"`
	ReadOnly  bool       `json:"read_only"`
	Suspended bool       `json:"suspended"`
	// OpenIDRequired is whether its people sign in only with OpenID Connect.
	OpenIDRequired bool        `json:"openid_required"`
	CreatedAt      models.Time `json:"created_at"`
}

// PlanRecord is the plan that an organization pays for, with the names of import files.
type PlanRecord struct {
	Name             string `json:"name"`
	API              bool   `json:"api"`
	ManualWorkOrders bool   `json:"manual_work_orders"`
	CallsPerMinute   int    `json:"calls_per_minute"`
	Integrations     int    `json:"integrations"`
}

// Organizations returns every organization, oldest first. It is for operators and
// does not check permissions. Errors: unavailable.
func (s *People) Organizations(ctx context.Context) ([]OrganizationRecord, error) {
	found := []OrganizationRecord{}
	return store.Read(ctx, s.Store, "", func(pipeline *pgx.Batch) error {
		pipeline.Queue(`
			SELECT o.id, o.key, i.name, o.read_only, o.suspended, o.openid_required, o.created_at,
				p.name, p.api, p.manual_work_orders, p.calls_per_minute, p.integrations
			FROM organizations o JOIN identities i ON i.id = o.id JOIN plans p ON p.organization_id = o.id
			ORDER BY o.id`).Query(func(rows pgx.Rows) error {
			var o OrganizationRecord
			_, err := pgx.ForEachRow(rows, []any{
				&o.ID, &o.Key, &o.Name, &o.ReadOnly, &o.Suspended, &o.OpenIDRequired, &o.CreatedAt,
				&o.Plan.Name, &o.Plan.API, &o.Plan.ManualWorkOrders, &o.Plan.CallsPerMinute, &o.Plan.Integrations,
			}, func() error {
				found = append(found, o)
				return nil
			})
			return err
		})
		return nil
	}, func() ([]OrganizationRecord, error) { return found, nil })
}

// OrganizationID returns the id of the organization with this id or key. It is for
// operators. Errors: not_found, unavailable.
func (s *People) OrganizationID(ctx context.Context, reference string) (string, error) {
	if !models.IsText(reference) {
		return "", models.NotFound()
	}
	found, err := store.FindOne[struct{ ID string }](ctx, s.Store, "", models.NotFound(),
		`SELECT id FROM organizations WHERE id = $1 OR key = $1 ORDER BY id = $1 DESC LIMIT 1`, reference)
	return found.ID, err
}
