package records

import (
	"context"
	"net/http"
	"slices"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
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
}

// feedbackResolutions are by whether the people in the record are shown.
var feedbackResolutions = store.ByPeople(func(people string) string {
	return `
	SELECT ` + FeedbackColumns(people) + `,
		` + access.ReadableFeedback("w", "@actor") + ` AS readable, o.read_only, o.suspended,
		` + access.GrantsOn("w.inventory_id", "@actor") + ` AS grants
	FROM feedback w JOIN organizations o ON o.id = w.organization_id
	WHERE w.id = @id`
})

// ResolveFeedback resolves feedback as a person in the console, notifies its creator
// unless that is the actor, and returns it. Errors: not_found, permission_denied,
// read_only, precondition_failed, rule_violation (status, if already resolved), unavailable,
// and for a form of the console *FormDoneError and *FormStaleError.
func (s *Records) ResolveFeedback(ctx context.Context, actor store.Actor, key store.Key, id string) (store.WriteResult, error) {
	if !models.IsID(id, models.PrefixFeedback) {
		return store.WriteResult{}, models.NotFound()
	}
	var known feedbackResolution
	return s.write(ctx, actor, key, http.StatusOK, store.Lock{Table: "feedback", ID: id}, func(reading *pgx.Batch) {
		store.QueueOne(reading, &known, models.NotFound(), feedbackResolutions[actor.ShowPeople], pgx.NamedArgs{"id": id, "actor": actor.IdentityID})
	}, func(t *store.Tx) (string, any, error) {
		if !known.Readable {
			return "", nil, models.NotFound()
		}
		if err := t.Matches(ctx, key, known.Shown(), known.OrganizationID, id); err != nil {
			return "", nil, err
		}
		if err := known.check(actor); err != nil {
			return "", nil, err
		}
		row := known.FeedbackRow
		err := resolve(t, actor, &row.Feedback)
		return id, row.Shown(), err
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
		return actor.MayNot("resolve feedback")
	}
	if r.Status != models.FeedbackOpen {
		return models.Violation(models.RuleStatus, "Feedback with the status %q does not allow this.", r.Status.Name())
	}
	return nil
}

// resolve resolves the feedback and queues the effects of it, at a time later than every earlier
// change of the record.
func resolve(t *store.Tx, actor store.Actor, feedback *models.Feedback) error {
	t.After(feedback.ChangedAt)
	before := *feedback
	feedback.Status, feedback.ResolvedAt, feedback.ChangedAt = models.FeedbackResolved, &t.At, t.At
	if err := t.Update(before, feedback); err != nil {
		return err
	}
	return effects.Queue(t, effects.Change{
		Actor:          actor,
		OrganizationID: feedback.OrganizationID,
		RecordID:       feedback.ID,
		Action:         string(models.EventIssueResolved),
		Changes:        models.JSON{"status": effects.FromTo(before.Status, feedback.Status)},
		Notices:        []effects.Notice{{Kind: string(models.NoticeFeedbackResolved), Identities: []string{feedback.CreatedBy}}},
		Events:         []effects.Event{{Type: models.EventIssueResolved}},
	})
}
