package service

import (
	"context"
	"net/http"
	"reflect"
	"slices"

	"millwright/models"
	"millwright/service/batch"
)

// feedbackResolution is what the rules need to know to resolve feedback.
type feedbackResolution struct {
	feedbackRow
	Readable bool
	organizationState
	// Grants are the actor's on the node.
	Grants []string
	// Addresses bounds how many webhook addresses may get the event.
	Addresses int
}

var lockFeedback = lockOf("feedback")

// feedbackResolutions are by whether the people in the record are shown.
var feedbackResolutions = byPeople(func(people string) string {
	return fill(`
	SELECT `+feedbackColumns+`,
		`+readableFeedback+` AS readable, o.read_only, o.suspended,
		`+fill(grantsOn, "node", "{w}.inventory_id")+` AS grants,
		(SELECT count(*) FROM webhooks h WHERE h.organization_id = {w}.organization_id) AS addresses
	FROM feedback {w} JOIN organizations o ON o.id = {w}.organization_id
	WHERE {w}.id = $1`, "w", "w", "actor", "$2", "people", people)
})

// ResolveFeedback resolves feedback as a person in the console, notifies its creator
// unless that is the actor, and returns it. Errors: not_found, permission_denied,
// read_only, precondition_failed, rule_violation (status, if already resolved), unavailable,
// and for a form of the console *FormDoneError and *FormStaleError.
func (s *Service) ResolveFeedback(ctx context.Context, actor Actor, call RequestKey, id string) (WriteResult, error) {
	if !models.IsID(id, models.PrefixFeedback) {
		return WriteResult{}, models.NotFound()
	}
	call = call.orForm(ctx)
	return s.writeRecord(ctx, actor, call, http.StatusOK, []string{id}, func(ctx context.Context, t *tx) (string, any, error) {
		var known feedbackResolution
		t.QueueLock(lockFeedback, id)
		batch.QueueOne(t.Tx, &known, models.NotFound(), feedbackResolutions[actor.ShowPeople], id, actor.IdentityID)
		if err := t.Flush(ctx); err != nil {
			return "", nil, err
		}
		if !known.Readable {
			return "", nil, models.NotFound()
		}
		if err := t.matches(ctx, call, &known.feedbackRow, known.OrganizationID, id); err != nil {
			return "", nil, err
		}
		if err := known.check(actor); err != nil {
			return "", nil, err
		}
		if err := t.resolve(actor, known); err != nil {
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

// check applies the rules to feedback that the actor may read. Errors: read_only,
// permission_denied, rule_violation.
func (r *feedbackResolution) check(actor Actor) error {
	if err := r.requireWritable(rejectReadOnly); err != nil {
		return err
	}
	if err := requirePerson(actor, "Resolving feedback"); err != nil {
		return err
	}
	if !slices.Contains(r.Grants, string(models.GrantFeedbackResolve)) {
		return models.Errorf(models.CodePermissionDenied, "The %s may not resolve feedback on this node.", actor.Kind)
	}
	if r.Status != models.FeedbackOpen {
		return models.Violation(models.RuleStatus, "Feedback with the status %q does not allow this.", r.Status.Name())
	}
	return nil
}

// resolve queues the change and its effects, at a time later than every earlier
// change of the record.
func (t *tx) resolve(actor Actor, feedback feedbackResolution) error {
	t.at = t.at.After(feedback.ChangedAt)
	if err := t.update(reflect.TypeFor[models.Feedback](), feedback.ID, map[string]any{
		"status": models.FeedbackResolved, "resolved_at": t.at, "changed_at": t.at,
	}); err != nil {
		return err
	}
	return t.queueEffects(effects{
		actor:          actor,
		organizationID: feedback.OrganizationID,
		recordID:       feedback.ID,
		action:         string(models.EventIssueResolved),
		changes:        models.JSON{"status": fromTo(feedback.Status, models.FeedbackResolved)},
		notices:        []notice{{string(models.NoticeFeedbackResolved), []string{feedback.CreatedBy}}},
		events:         []domainEvent{{kind: models.EventIssueResolved}},
		addresses:      feedback.Addresses,
	})
}
