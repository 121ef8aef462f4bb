package people

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
)

// Find returns the ids of the people with the identity id or e-mail address, for
// operators: of one organization, by key or id, or of all. Errors: not_found if there is no
// such organization, unavailable.
func (s *People) Find(ctx context.Context, reference, organization string) ([]string, error) {
	if !models.IsText(reference) {
		return nil, nil
	}
	var err error
	if organization != "" {
		if organization, err = s.OrganizationID(ctx, organization); err != nil {
			return nil, err
		}
	}
	found, err := store.FindAll[struct{ ID string }](ctx, s.Store, "", `
		SELECT id FROM people WHERE (id = @reference OR folded_email = @email) AND (@organization = '' OR organization_id = @organization)
		ORDER BY id LIMIT 100`, pgx.NamedArgs{"reference": reference, "email": models.Fold(reference), "organization": organization})
	ids := make([]string, len(found))
	for i := range found {
		ids[i] = found[i].ID
	}
	return ids, err
}
