package records

import (
	"context"
	"net/http"
	"slices"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/effects"
	"millwright/service/inventory"
	"millwright/service/store"
)

// NewFeedback holds the fields of feedback to create.
type NewFeedback struct {
	InventoryID string
	Subject     string
	Description *string
	ExternalID  *string
}

// feedbackCreation is what the rules need to know to create feedback.
type feedbackCreation struct {
	organizationState
	// Grants are the actor's on the node, empty if it does not see the node. NodeRetired is
	// whether it cannot be chosen.
	Grants      []string
	NodeRetired bool
	// Managers are the nearest active inventory managers, without any the administrators.
	Managers []string
	// Inventory is the node, nil if the organization has no such node. People are as in FeedbackRow.
	Inventory *models.NodeReference
	People    []models.NamedIdentity
	// Taken is true if other feedback has the external_id. Existing
	// is its id if the actor has the permission to read it.
	Taken    bool
	Existing *string
}

// feedbackCreations select a feedbackCreation, by whether the people in the record are shown. They look the external_id
// up in index order: by equality alone, any index that begins with the organization seems as good while the table is empty.
var feedbackCreations = store.ByPeople(func(people string) string {
	return `
	SELECT o.read_only, o.suspended, n.retired_at IS NOT NULL AS node_retired,
		` + access.GrantsOn("n.id", "@actor") + ` AS grants,
		` + managersOrAdmins("n.id", "o.id") + ` AS managers,
		` + store.NodeReference("n.id") + ` AS inventory,
		` + store.PeopleAmong(people, "@actor") + `,
		coalesce(f.external_key = @external, false) AS taken,
		CASE WHEN f.external_key = @external AND ` + access.ReadableFeedback("f", "@actor") + ` THEN f.id END AS existing
	FROM organizations o
	LEFT JOIN inventory_nodes n ON n.organization_id = o.id AND n.id = @node
	LEFT JOIN LATERAL (SELECT * FROM feedback WHERE organization_id = o.id AND external_key >= @external
		ORDER BY organization_id, external_key LIMIT 1) f ON true
	WHERE o.id = @organization`
})

// CreateFeedback creates feedback (api.md 4.1) and returns it
// with status 201. Errors: validation_failed, permission_denied,
// external_id_taken, idempotency_key_reused, unavailable.
func (s *Records) CreateFeedback(ctx context.Context, actor store.Actor, key store.Key, in NewFeedback) (store.WriteResult, error) {
	var known feedbackCreation
	result, err := s.createFeedback(ctx, actor, key, in, &known)
	if models.CodeOf(err) == models.CodeExternalIDTaken && !known.Taken {
		// Two at a time: the constraint does not name the feedback that has it, and the rules do once it is there.
		result, err = s.createFeedback(ctx, actor, key, in, &known)
	}
	return result, err
}

func (s *Records) createFeedback(ctx context.Context, actor store.Actor, key store.Key, in NewFeedback, known *feedbackCreation) (store.WriteResult, error) {
	return s.write(ctx, actor, key, http.StatusCreated, store.Lock{}, func(reading *pgx.Batch) {
		store.QueueOne(reading, known, nil, feedbackCreations[actor.ShowPeople], pgx.NamedArgs{
			"actor": actor.IdentityID, "organization": actor.OrganizationID, "node": in.InventoryID, "external": models.ExternalKey(in.ExternalID),
		})
	}, func(t *store.Tx) (string, any, error) {
		if err := known.check(actor, in); err != nil {
			return "", nil, err
		}
		id, err := t.NewID(models.PrefixFeedback)
		if err != nil {
			return "", nil, err
		}
		t.Unreadable = !slices.Contains(known.Grants, string(models.GrantFeedbackRead))
		row := FeedbackRow{Inventory: known.Inventory, People: known.People, Feedback: models.Feedback{
			ID:             id,
			OrganizationID: actor.OrganizationID,
			InventoryID:    in.InventoryID,
			Subject:        in.Subject,
			Description:    in.Description,
			ExternalID:     in.ExternalID,
			Status:         models.FeedbackOpen,
			CreatedBy:      actor.IdentityID,
			CreatedAt:      t.At,
			ChangedAt:      t.At,
		}}
		return id, row.Shown(), insertFeedback(t, actor, row.Feedback, known.Managers)
	})
}

// check applies the rules in the order in which an integrator would fix the
// errors. Errors: CreateFeedback's.
func (c feedbackCreation) check(actor store.Actor, in NewFeedback) error {
	if err := c.requireWritable(allowReadOnly); err != nil {
		return err
	}
	fields := append(checkTitle("/subject", in.Subject), store.CheckDescribed(in.Description, in.ExternalID)...)
	if len(c.Grants) == 0 {
		fields = append(fields, store.UnknownField("/inventory_id", "inventory node"))
	} else if c.NodeRetired {
		fields = append(fields, inventory.RetiredField("/inventory_id", "inventory node"))
	}
	switch {
	case len(fields) > 0:
		return models.Invalid(fields...)
	case !slices.Contains(c.Grants, string(models.GrantFeedbackCreate)):
		return actor.MayNot("give feedback")
	case c.Taken:
		if c.Existing != nil && actor.HasReadScope(*c.Existing) {
			return store.ExternalIDTaken(*c.Existing)
		}
		return store.ExternalIDTaken("")
	}
	return nil
}

// insertFeedback queues the feedback and the effects of its creation.
func insertFeedback(t *store.Tx, actor store.Actor, row models.Feedback, managers []string) error {
	if err := t.Create(&row); err != nil {
		return err
	}
	return effects.Queue(t, effects.Change{
		Actor:          actor,
		OrganizationID: row.OrganizationID,
		RecordID:       row.ID,
		Action:         string(models.EventIssueCreated),
		Changes: changedFields(nil, map[string]any{
			"inventory_id": row.InventoryID, "subject": row.Subject, "description": ifSet(row.Description), "external_id": ifSet(row.ExternalID),
			"status": row.Status,
		}),
		Notices: []effects.Notice{{Kind: string(models.NoticeFeedbackOpened), Identities: managers}},
		Events:  []effects.Event{{Type: models.EventIssueCreated}},
	})
}
