package records

import (
	"context"
	"slices"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/lists"
	"millwright/service/store"
)

// FeedbackForPerson returns a page of feedback that the actor may read, newest first: at
// most limit records, from the position of the previous page's cursor. With words HasMore is true
// if more may have them than were looked at. Errors:
// invalid_request (a cursor of another list), unavailable.
func (s *Records) FeedbackForPerson(ctx context.Context, actor store.Actor, filter FeedbackFilter, cursor string, limit int) (page lists.Page[models.FeedbackRecord], err error) {
	request := lists.ListRequest{Limit: limit, Cursor: cursor}
	if filter.Text != "" {
		found, err := s.feedbackWithWords(ctx, actor, filter.Text)
		if err != nil || len(found.IDs) == 0 {
			page.HasMore = found.More
			return page, err
		}
		request.IDs, request.Found = found.IDs, true
		page, err = lists.DecodePage[models.FeedbackRecord](s.FeedbackList(ctx, actor, filter, request))
		page.HasMore = page.HasMore || found.More
		return page, err
	}
	return lists.DecodePage[models.FeedbackRecord](s.FeedbackList(ctx, actor, filter, request))
}

// wordedFeedback are the ids of the newest feedback with some words, and whether more may have them.
type wordedFeedback struct {
	IDs  []string
	More bool
}

// feedbackWordsQuery selects the newest feedback with the @words that @actor may read. It looks at @most that
// have them, which are any if there are more.
var feedbackWordsQuery = `
	WITH worded AS MATERIALIZED (SELECT id FROM feedback WHERE words @@ @words::tsquery LIMIT @most),
		readable AS MATERIALIZED (SELECT w.id FROM worded CROSS JOIN LATERAL (SELECT * FROM feedback WHERE id = worded.id LIMIT 1) w
			WHERE ` + access.ReadableFeedback("w", "@actor") + ` ORDER BY w.id DESC LIMIT @limit::bigint + 1)
	SELECT ARRAY(SELECT id FROM readable ORDER BY id DESC LIMIT @limit) AS ids,
		(SELECT count(*) FROM worded) >= @most OR (SELECT count(*) FROM readable) > @limit AS more`

// feedbackWithWords finds the newest feedback that has the words. Errors: unavailable.
func (s *Records) feedbackWithWords(ctx context.Context, actor store.Actor, text string) (found wordedFeedback, err error) {
	if !models.IsText(text) || utf8.RuneCountInString(text) > maxSearchText {
		return found, nil
	}
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueOne(pipeline, &found, pgx.ErrNoRows, feedbackWordsQuery, pgx.NamedArgs{
			"actor": actor.IdentityID, "words": models.WordQuery(models.SearchWords(text), actor.OrganizationID), "most": maxWordMatches, "limit": models.MaxPageSize,
		})
		return nil
	}, func() (wordedFeedback, error) { return found, nil })
}

// FeedbackDetail is feedback with what its page shows.
type FeedbackDetail struct {
	Record models.FeedbackRecord
	// ETag is the record's, for forms that change it.
	ETag    string
	History HistoryPage
	// Resolving is why the actor may not resolve it, nil if it may.
	Resolving error
	// CreatesWorkOrders is whether the actor may create work orders on its node. Work orders of
	// sub-equipment are created on the node above.
	CreatesWorkOrders bool
	// WorkOrders were made of it, newest first: at most maxMadeOfIt that the actor may read.
	WorkOrders []LinkedRecord
}

const maxMadeOfIt = 20

// madeOfItQuery selects the work orders made of the feedback $1 that the actor $2 may read.
var madeOfItQuery = `
	SELECT w.id, w.title, w.number, w.status FROM work_orders w
	WHERE w.feedback_id = $1 AND ` + access.ReadableWorkOrder("w", "$2") + ` ORDER BY w.id DESC LIMIT $3`

// FeedbackDetail returns feedback that the actor may read, with a part of its history
// and what the actor may do with it. Errors: not_found, unavailable.
func (s *Records) FeedbackDetail(ctx context.Context, actor store.Actor, id string, before int64) (FeedbackDetail, error) {
	if !models.IsID(id, models.PrefixFeedback) {
		return FeedbackDetail{}, models.NotFound()
	}
	var known feedbackResolution
	history := historyRead{actor: actor, before: before, limit: shownChanges}
	var manual bool
	var made []LinkedRecord
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueOne(pipeline, &known, models.NotFound(), feedbackResolutions[actor.ShowPeople], pgx.NamedArgs{"id": id, "actor": actor.IdentityID})
		history.queueChanges(pipeline, id)
		store.QueueAll(pipeline, &made, madeOfItQuery, id, actor.IdentityID, maxMadeOfIt)
		pipeline.Queue(`SELECT manual_work_orders FROM plans WHERE organization_id = $1`, actor.OrganizationID).
			QueryRow(func(row pgx.Row) error { return row.Scan(&manual) })
		return nil
	}, func() (detail FeedbackDetail, err error) {
		if !known.Readable {
			return detail, models.NotFound()
		}
		detail.Record = *known.Shown()
		if detail.ETag, err = store.ETagOf(detail.Record); err != nil {
			return detail, err
		}
		detail.Resolving = known.check(actor)
		detail.CreatesWorkOrders = manual && known.requireWritable(rejectReadOnly) == nil && slices.Contains(known.Grants, string(models.GrantWorkOrdersCreate))
		detail.WorkOrders = made
		detail.History = history.page()
		return detail, nil
	})
}
