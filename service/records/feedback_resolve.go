package records

import (
	"context"
	"net/http"
	"reflect"
	"slices"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/batch"
	"millwright/service/effects"
	"millwright/service/store"
)

// feedbackResolution is what the rules need to know to resolve feedback.
type feedbackResolution struct {
	FeedbackRow
	Readable bool
	organizationState
	// Grants are the actor's on the node.
	Grants []string
	// Addresses bounds how many webhook addresses may get the event.
	Addresses int
}

var lockFeedback = store.LockOf("feedback")

// feedbackResolutions are by whether the people in the record are shown.
var feedbackResolutions = store.ByPeople(func(people string) string {
	return store.Fill(`
	SELECT `+FeedbackColumns+`,
		`+access.ReadableFeedback+` AS readable, o.read_only, o.suspended,
		`+store.Fill(access.GrantsOn, "node", "{w}.inventory_id")+` AS grants,
		(SELECT count(*) FROM webhooks h WHERE h.organization_id = {w}.organization_id) AS addresses
	FROM feedback {w} JOIN organizations o ON o.id = {w}.organization_id
	WHERE {w}.id = $1`, "w", "w", "actor", "$2", "people", people)
})

// ResolveFeedback resolves feedback as a person in the console, notifies its creator
// unless that is the actor, and returns it. Errors: not_found, permission_denied,
// read_only, precondition_failed, rule_violation (status, if already resolved), unavailable,
// and for a form of the console *FormDoneError and *FormStaleError.
func (s *Records) ResolveFeedback(ctx context.Context, actor store.Actor, key store.Key, id string) (store.WriteResult, error) {
	if !models.IsID(id, models.PrefixFeedback) {
		return store.WriteResult{}, models.NotFound()
	}
	return s.write(ctx, actor, key, http.StatusOK, []string{id}, func(ctx context.Context, t *store.Tx) (string, any, error) {
		var known feedbackResolution
		t.QueueLock(lockFeedback, id)
		batch.QueueOne(t.Tx, &known, models.NotFound(), feedbackResolutions[actor.ShowPeople], id, actor.IdentityID)
		if err := t.Flush(ctx); err != nil {
			return "", nil, err
		}
		if !known.Readable {
			return "", nil, models.NotFound()
		}
		if err := t.Matches(ctx, key, &known.FeedbackRow, known.OrganizationID, id); err != nil {
			return "", nil, err
		}
		if err := known.check(actor); err != nil {
			return "", nil, err
		}
		if err := resolve(t, actor, known); err != nil {
			return "", nil, err
		}
		return writtenFeedback(ctx, t, id, actor)
	})
}

// check applies the rules to feedback that the actor may read. Errors:
// permission_denied, rule_violation.
func (r *feedbackResolution) check(actor store.Actor) error {
	if err := r.requireWritable(allowReadOnly); err != nil {
		return err
	}
	if err := access.RequirePerson(actor, "Resolving feedback"); err != nil {
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
func resolve(t *store.Tx, actor store.Actor, feedback feedbackResolution) error {
	t.At = t.At.After(feedback.ChangedAt)
	if err := t.Update(reflect.TypeFor[models.Feedback](), feedback.ID, map[string]any{
		"status": models.FeedbackResolved, "resolved_at": t.At, "changed_at": t.At,
	}); err != nil {
		return err
	}
	return effects.Queue(t, effects.Change{
		Actor:          actor,
		OrganizationID: feedback.OrganizationID,
		RecordID:       feedback.ID,
		Action:         string(models.EventIssueResolved),
		Changes:        models.JSON{"status": effects.FromTo(feedback.Status, models.FeedbackResolved)},
		Notices:        []effects.Notice{{Kind: string(models.NoticeFeedbackResolved), Identities: []string{feedback.CreatedBy}}},
		Events:         []effects.Event{{Type: models.EventIssueResolved}},
		Addresses:      feedback.Addresses,
	})
}
