package records

import (
	"context"
	"net/http"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/effects"
	"millwright/service/store"
)

// commentedRecord is what the rules need to know of a work order or feedback and of the actor.
type commentedRecord struct {
	OrganizationID string
	Readable       bool
	organizationState
	// Concerned get a notice of the comment.
	Concerned []string
	// Latest is the time of the latest change or comment.
	Latest models.Time
}

// commentRules are the rules for comments on one kind of record.
type commentRules struct {
	table string
	// record selects a commentedRecord: the record @id for the @actor of the @organization.
	record string
	// added is the action of a comment and its notice, removed the action of its removal.
	added   models.NoticeKind
	removed string
}

var (
	workOrderComments = commentRules{
		"work_orders", commentedQuery("work_orders", access.ReadableWorkOrder("w", "@actor"), assignedIn("w.id", "true")+` || w.created_by::text`),
		models.NoticeCommented, "work_order.comment_removed",
	}
	feedbackComments = commentRules{
		"feedback", commentedQuery("feedback", access.ReadableFeedback("w", "@actor"),
			managersOrAdmins("w.inventory_id", "w.organization_id")+` || w.created_by::text`),
		models.NoticeFeedbackComment, "issue.comment_removed",
	}
)

func commentedQuery(table, readable, concerned string) string {
	return `
	SELECT w.organization_id, ` + readable + ` AS readable, ` + bothOrganizations("@organization") + `, ` + concerned + ` AS concerned,
		greatest(w.changed_at, (SELECT created_at FROM log WHERE record_id = w.id ORDER BY id DESC LIMIT 1)) AS latest
	FROM ` + table + ` w WHERE w.id = @id`
}

// commentRulesOf returns the rules for the record with the id. Errors: not_found.
func commentRulesOf(recordID string) (commentRules, error) {
	switch {
	case models.IsID(recordID, models.PrefixWorkOrder):
		return workOrderComments, nil
	case models.IsID(recordID, models.PrefixFeedback):
		return feedbackComments, nil
	}
	return commentRules{}, models.NotFound()
}

// AddComment comments on a work order or feedback that the person may read, whatever its status,
// and notifies those concerned. The record and its ETag stay as they are, and no event is sent
// (docs/console.md, Comments). Errors: not_found, permission_denied (an integration, a
// suspended organization), validation_failed, unavailable, *FormDoneError.
func (s *Records) AddComment(ctx context.Context, actor store.Actor, key store.Key, recordID, text string) error {
	rules, err := commentRulesOf(recordID)
	if err != nil {
		return err
	}
	var known commentedRecord
	_, err = s.Write(ctx, actor, key, http.StatusCreated, store.Lock{Table: rules.table, ID: recordID}, func(reading *pgx.Batch) {
		store.QueueOne(reading, &known, models.NotFound(), rules.record, pgx.NamedArgs{"id": recordID, "actor": actor.IdentityID, "organization": actor.OrganizationID})
	}, func(t *store.Tx) (string, any, error) {
		if err := known.check(actor, text); err != nil {
			return "", nil, err
		}
		id, err := t.NewID(models.PrefixComment)
		if err != nil {
			return "", nil, err
		}
		t.After(known.Latest) // an e-mail has the notices of one time
		if err := t.Create(&models.Comment{
			ID: id, OrganizationID: known.OrganizationID, RecordID: recordID, Text: &text, CreatedBy: actor.IdentityID, CreatedAt: t.At,
		}); err != nil {
			return "", nil, err
		}
		return recordID, struct{}{}, effects.Queue(t, effects.Change{
			Actor: actor, OrganizationID: known.OrganizationID, RecordID: recordID, Action: string(rules.added),
			Changes: models.JSON{models.CommentField: effects.FromTo(nil, id)},
			Notices: []effects.Notice{{Kind: string(rules.added), Identities: known.Concerned}},
		})
	})
	return err
}

// check applies the rules for a comment. Errors: AddComment's.
func (r *commentedRecord) check(actor store.Actor, text string) error {
	if !r.Readable {
		return models.NotFound()
	}
	if err := access.RequirePerson(actor, "Commenting"); err != nil {
		return err
	}
	if err := r.requireWritable(allowReadOnly); err != nil {
		return err
	}
	return store.Invalid(append(store.CheckBlank("/text", text), store.CheckText("/text", &text, models.MaxComment)...))
}

// removableComment is a comment with what the rules need to know to remove it.
type removableComment struct {
	models.Comment
	Readable, Admin bool
}

var (
	// removableQuery selects a removableComment: the comment @id for the @actor.
	removableQuery = `
	SELECT ` + store.ColumnsOf[models.Comment]("c") + `, ` + access.ReadsRecord("c.record_id", "@actor") + ` AS readable,
		` + access.IsAdmin("@actor", "c.organization_id") + ` AS admin
	FROM comments c WHERE c.id = @id`
)

// check applies the rule for removing a comment. Errors: not_found, permission_denied.
func (c *removableComment) check() error {
	switch {
	case !c.Readable:
		return models.NotFound()
	case !c.Admin:
		return models.Errorf(models.CodePermissionDenied, "Only an administrator of the organization that the record belongs to may remove a comment.")
	}
	return nil
}

// CommentToRemove returns a comment that the person may remove: an administrator of the
// record's organization, who reads the record. Errors: not_found, permission_denied, unavailable.
func (s *Records) CommentToRemove(ctx context.Context, actor store.Actor, id string) (models.Comment, error) {
	if !models.IsID(id, models.PrefixComment) {
		return models.Comment{}, models.NotFound()
	}
	var comment removableComment
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueOne(pipeline, &comment, models.NotFound(), removableQuery, pgx.NamedArgs{"id": id, "actor": actor.IdentityID})
		return nil
	}, func() (models.Comment, error) { return comment.Comment, comment.check() })
}

// RemoveComment removes the text of a comment for good. The history still shows who commented
// when, and the log who removed it. Removing it again has no effect. Errors: CommentToRemove's
// and *FormDoneError.
func (s *Records) RemoveComment(ctx context.Context, actor store.Actor, key store.Key, id string) error {
	if !models.IsID(id, models.PrefixComment) {
		return models.NotFound()
	}
	var comment removableComment
	_, err := s.Write(ctx, actor, key, http.StatusOK, store.Lock{Table: "comments", ID: id}, func(reading *pgx.Batch) {
		store.QueueOne(reading, &comment, models.NotFound(), removableQuery, pgx.NamedArgs{"id": id, "actor": actor.IdentityID})
	}, func(t *store.Tx) (string, any, error) {
		if err := comment.check(); err != nil {
			return "", nil, err
		}
		if comment.Text == nil {
			return comment.RecordID, struct{}{}, nil
		}
		rules, err := commentRulesOf(comment.RecordID)
		if err != nil {
			return "", nil, err
		}
		removed := comment.Comment
		removed.Text = nil
		if err := t.Update(comment.Comment, &removed); err != nil {
			return "", nil, err
		}
		return comment.RecordID, struct{}{}, effects.Queue(t, effects.Change{
			Actor: actor, OrganizationID: comment.OrganizationID, RecordID: comment.RecordID, Action: rules.removed,
		})
	})
	return err
}
