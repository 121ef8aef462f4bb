package records

import (
	"context"
	"net/http"
	"slices"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/batch"
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
	// Addresses bounds how many webhook addresses may get the event.
	Addresses int
	// Taken is true if other feedback has the external_id, whose lock the write holds. Existing
	// is its id if the actor has the permission to read it.
	Taken    bool
	Existing *string
}

// feedbackCreations looks the external_id up in index order: by equality alone, any index
// that begins with the organization seems as good while the table is empty.
var feedbackCreations = &batch.Statement{Stage: store.StageRules, ReadOnly: true, SQL: `
	SELECT u.nth, o.read_only, o.suspended, n.retired_at IS NOT NULL AS node_retired,
		` + store.Fill(access.GrantsOn, "node", "n.id", "actor", "u.actor") + ` AS grants,
		` + store.Fill(managersOrAdmins, "node", "n.id", "organization", "o.id") + ` AS managers,
		(SELECT count(*) FROM webhooks h WHERE h.organization_id = o.id) AS addresses,
		coalesce(f.external_id = u.external, false) AS taken,
		CASE WHEN f.external_id = u.external AND ` + store.Fill(access.ReadableFeedback, "w", "f", "actor", "u.actor") + ` THEN f.id END AS existing
	FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY u (actor, organization, node, external, nth)
	JOIN organizations o ON o.id = u.organization
	LEFT JOIN inventory_nodes n ON n.organization_id = o.id AND n.id = u.node
	LEFT JOIN LATERAL (SELECT * FROM feedback WHERE organization_id = o.id AND external_id >= u.external
		ORDER BY organization_id, external_id LIMIT 1) f ON true`}

// CreateFeedback creates feedback (api.md 4.1) and returns it
// with status 201. Errors: validation_failed, permission_denied,
// external_id_taken, idempotency_key_reused, unavailable.
func (s *Records) CreateFeedback(ctx context.Context, actor store.Actor, key store.Key, in NewFeedback) (store.WriteResult, error) {
	var locks []string
	if in.ExternalID != nil {
		locks = []string{feedbackKey(actor.OrganizationID, *in.ExternalID)}
	}
	return s.write(ctx, actor, key, http.StatusCreated, locks, func(ctx context.Context, t *store.Tx) (string, any, error) {
		for _, name := range locks {
			t.QueueLockKey(name)
		}
		var known feedbackCreation
		batch.QueueBulkOne(t.Tx, feedbackCreations, &known, nil, actor.IdentityID, actor.OrganizationID, in.InventoryID, in.ExternalID)
		if err := t.Flush(ctx); err != nil {
			return "", nil, err
		}
		if err := known.check(actor, in); err != nil {
			return "", nil, err
		}
		id, err := t.NewID(models.PrefixFeedback)
		if err != nil {
			return "", nil, err
		}
		if err := insertFeedback(t, actor, id, in, known); err != nil {
			return "", nil, err
		}
		t.Unreadable = !slices.Contains(known.Grants, string(models.GrantFeedbackRead))
		return writtenFeedback(ctx, t, id, actor)
	})
}

// feedbackKey names an external_id of the organization's feedback for a lock. Two
// creations with one would break a unique constraint, which fails a whole transaction.
func feedbackKey(organizationID, externalID string) string {
	return "feedback " + organizationID + " " + externalID
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
		return models.Errorf(models.CodePermissionDenied, "The %s may not give feedback on this node.", actor.Kind)
	case c.Taken:
		if c.Existing != nil && actor.HasReadScope(*c.Existing) {
			return store.ExternalIDTaken(*c.Existing)
		}
		return store.ExternalIDTaken("")
	}
	return nil
}

// insertFeedback queues the feedback and the effects of its creation.
func insertFeedback(t *store.Tx, actor store.Actor, id string, in NewFeedback, known feedbackCreation) error {
	if err := t.Insert(&models.Feedback{
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
	}); err != nil {
		return err
	}
	changes := models.JSON{
		"inventory_id": effects.FromTo(nil, in.InventoryID), "subject": effects.FromTo(nil, in.Subject), "status": effects.FromTo(nil, models.FeedbackOpen),
	}
	for name, value := range map[string]*string{"description": in.Description, "external_id": in.ExternalID} {
		if value != nil {
			changes[name] = effects.FromTo(nil, *value)
		}
	}
	return effects.Queue(t, effects.Change{
		Actor:          actor,
		OrganizationID: actor.OrganizationID,
		RecordID:       id,
		Action:         string(models.EventIssueCreated),
		Changes:        changes,
		Notices:        []effects.Notice{{Kind: "issue.created", Identities: known.Managers}},
		Events:         []effects.Event{{Type: models.EventIssueCreated}},
		Addresses:      known.Addresses,
	})
}
