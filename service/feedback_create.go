package service

import (
	"context"
	"net/http"
	"slices"

	"millwright/models"
	"millwright/service/batch"
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
	// Grants are the actor's on the node, empty if it does not see the node.
	Grants []string
	// Managers are the nearest inventory managers.
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
var feedbackCreations = &batch.Statement{Stage: stageRules, ReadOnly: true, SQL: `
	SELECT u.nth, o.read_only, o.suspended,
		` + fill(grantsOn, "node", "n.id", "actor", "u.actor") + ` AS grants,
		` + fill(nearestManagers, "node", "n.id", "except", "'{}'::text[]") + ` AS managers,
		(SELECT count(*) FROM webhooks h WHERE h.organization_id = o.id) AS addresses,
		coalesce(f.external_id = u.external, false) AS taken,
		CASE WHEN f.external_id = u.external AND ` + fill(readableFeedback, "w", "f", "actor", "u.actor") + ` THEN f.id END AS existing
	FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY u (actor, organization, node, external, nth)
	JOIN organizations o ON o.id = u.organization
	LEFT JOIN inventory_nodes n ON n.organization_id = o.id AND n.id = u.node
	LEFT JOIN LATERAL (SELECT * FROM feedback WHERE organization_id = o.id AND external_id >= u.external
		ORDER BY organization_id, external_id LIMIT 1) f ON true`}

// CreateFeedback creates feedback (spec section 4, rules 1 and 8) and returns it
// with status 201. Errors: read_only, validation_failed, permission_denied,
// external_id_taken, idempotency_key_reused, unavailable.
func (s *Service) CreateFeedback(ctx context.Context, actor Actor, call RequestKey, in NewFeedback) (WriteResult, error) {
	var locks []string
	if in.ExternalID != nil {
		locks = []string{feedbackKey(actor.OrganizationID, *in.ExternalID)}
	}
	return s.writeRecord(ctx, actor, call, http.StatusCreated, locks, func(ctx context.Context, t *tx) (string, any, error) {
		for _, key := range locks {
			t.queueLockKey(key)
		}
		var known feedbackCreation
		batch.QueueBulkOne(t.Tx, feedbackCreations, &known, nil, actor.IdentityID, actor.OrganizationID, in.InventoryID, in.ExternalID)
		if err := t.Flush(ctx); err != nil {
			return "", nil, err
		}
		if err := known.check(actor, in); err != nil {
			return "", nil, err
		}
		id, err := t.newID(models.PrefixFeedback)
		if err != nil {
			return "", nil, err
		}
		if err := t.insertFeedback(actor, id, in, known); err != nil {
			return "", nil, err
		}
		var row feedbackRow
		t.queueFeedback(&row, id, actor)
		if err := t.Flush(ctx); err != nil {
			return "", nil, err
		}
		return id, &row, nil
	})
}

// feedbackKey names an external_id of the organization's feedback for a lock. Two
// creations with one would break a unique constraint, which fails a whole transaction.
func feedbackKey(organizationID, externalID string) string {
	return "feedback " + organizationID + " " + externalID
}

// check applies the rules in the order in which an integrator would fix the
// errors. Errors: CreateFeedback's.
func (c feedbackCreation) check(actor Actor, in NewFeedback) error {
	if err := c.requireWritable(rejectReadOnly); err != nil {
		return err
	}
	fields := append(checkTitle("/subject", in.Subject), checkDescribed(in.Description, in.ExternalID)...)
	if len(c.Grants) == 0 {
		fields = append(fields, unknownField("/inventory_id", "inventory node"))
	}
	switch {
	case len(fields) > 0:
		return models.Invalid(fields...)
	case !slices.Contains(c.Grants, string(models.GrantFeedbackCreate)):
		return models.Errorf(models.CodePermissionDenied, "The %s may not give feedback on this node.", actor.Kind)
	case c.Taken:
		if c.Existing != nil && (actor.Kind != models.KindIntegration || actor.readsFeedback) {
			return externalIDTaken(*c.Existing)
		}
		return externalIDTaken("")
	}
	return nil
}

// insertFeedback queues the feedback and the effects of its creation.
func (t *tx) insertFeedback(actor Actor, id string, in NewFeedback, known feedbackCreation) error {
	if err := t.insert(&models.Feedback{
		ID:             id,
		OrganizationID: actor.OrganizationID,
		InventoryID:    in.InventoryID,
		Subject:        in.Subject,
		Description:    in.Description,
		ExternalID:     in.ExternalID,
		Status:         models.FeedbackOpen,
		CreatedBy:      actor.IdentityID,
		CreatedAt:      t.at,
		ChangedAt:      t.at,
	}); err != nil {
		return err
	}
	changes := models.JSON{
		"inventory_id": fromTo(nil, in.InventoryID), "subject": fromTo(nil, in.Subject), "status": fromTo(nil, models.FeedbackOpen),
	}
	for name, value := range map[string]*string{"description": in.Description, "external_id": in.ExternalID} {
		if value != nil {
			changes[name] = fromTo(nil, *value)
		}
	}
	return t.queueEffects(effects{
		actor:          actor,
		organizationID: actor.OrganizationID,
		recordID:       id,
		action:         string(models.EventIssueCreated),
		changes:        changes,
		notices:        []notice{{"issue.created", known.Managers}},
		events:         []domainEvent{{kind: models.EventIssueCreated}},
		addresses:      known.Addresses,
	})
}
