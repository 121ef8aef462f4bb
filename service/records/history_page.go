package records

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
)

// HistoryPage is a part of a record's history for people, the newest change first.
type HistoryPage struct {
	Changes []Change
	// Names are the names of the workers and consultants in the changes, by id.
	Names map[string]string
	// Next is the before of the next page, 0 on the last page.
	Next int64
}

// Change is one change of a record. ActorName is its Author's. A changed description is
// mentioned without its content.
type Change struct {
	ID int64
	models.HistoryEntry
	ActorNow   *string
	ActorOpens bool
}

// Author returns who made the change.
func (c Change) Author() Author {
	return Author{c.ActorID, c.ActorKind, c.ActorName, c.ActorNow, c.ActorOpens}
}

// Since returns the changes of the page after the time, without comments.
func (p HistoryPage) Since(at models.Time) []Change {
	var since []Change
	for _, change := range p.Changes {
		if change.At.Time.After(at.Time) && change.CommentID() == "" {
			since = append(since, change)
		}
	}
	return since
}

// historyPageQuery reads the text of a comment, as that of a review; it is null if removed.
var historyPageQuery = `
	SELECT h.id, h.record_id, h.organization_id, ` + authorColumns("$4::boolean", "$5") + `,
		h.action, h.created_at AS at,
		CASE WHEN h.changes ? 'description' THEN h.changes || '{"description": {"from": null, "to": null}}'
			WHEN h.changes ? 'comment_id' THEN h.changes || jsonb_build_object('comment', jsonb_build_object('from', NULL,
				'to', (SELECT text FROM comments WHERE id = h.changes -> 'comment_id' ->> 'to' LIMIT 1)))
			ELSE h.changes END AS changes
	FROM (SELECT * FROM log WHERE record_id = $1 AND id < $2 AND changes IS NOT NULL ORDER BY id DESC LIMIT $3) h
	LEFT JOIN identities i ON i.id = h.actor_id
	ORDER BY h.id DESC`

// historyRead reads a page of a history in two round trips of read: changes, then names.
type historyRead struct {
	actor store.Actor
	// before is the id of a change, 0 for the latest ones.
	before int64
	limit  int
	found  []Change
	named  []NamedRecord
}

func namesByID(rows []NamedRecord) map[string]string {
	names := map[string]string{}
	for _, row := range rows {
		names[row.ID] = row.Name
	}
	return names
}

func (h *historyRead) queueChanges(pipeline *pgx.Batch, id string) {
	store.QueueAll(pipeline, &h.found, historyPageQuery, id, cmp.Or(h.before, 1<<62), h.limit+1, h.actor.ShowPeople, h.actor.OrganizationID)
}

// queueNames adds the query of the names, if there are any.
func (h *historyRead) queueNames(pipeline *pgx.Batch) error {
	var ids []string
	for _, row := range h.found {
		for _, field := range []string{"assignees", "consultants"} {
			for _, list := range []json.RawMessage{row.Changes[field].From, row.Changes[field].To} {
				var named []string
				if len(list) > 0 {
					if err := json.Unmarshal(list, &named); err != nil {
						return err
					}
				}
				ids = append(ids, named...)
			}
		}
	}
	if len(ids) > 0 && h.actor.ShowPeople {
		store.QueueAll(pipeline, &h.named, `SELECT id, name FROM identities WHERE id = ANY ($1)`, ids)
	}
	return nil
}

func (h *historyRead) page() HistoryPage {
	page := HistoryPage{Changes: h.found, Names: namesByID(h.named)}
	if len(h.found) > h.limit {
		page.Changes = h.found[:h.limit]
		page.Next = h.found[h.limit-1].ID
	}
	return page
}

// HistoryPage returns a page of the history of a work order or feedback that the actor
// may read, the newest change first; before is the Next of the previous page, 0 for the
// first. Errors: not_found, unavailable.
func (s *Records) HistoryPage(ctx context.Context, actor store.Actor, id string, before int64, limit int) (HistoryPage, error) {
	history := historyRead{actor: actor, before: before, limit: min(cmp.Or(limit, models.DefaultPageSize), models.MaxPageSize)}
	var readable bool
	return store.ReadInRounds(ctx, s.Store, actor.OrganizationID, store.Rounds{func(pipeline *pgx.Batch) error {
		history.queueChanges(pipeline, id)
		return queueReadable(pipeline, &readable, actor, id)
	}, func(pipeline *pgx.Batch) error {
		if !readable {
			return models.NotFound()
		}
		return history.queueNames(pipeline)
	}}, func() (HistoryPage, error) { return history.page(), nil })
}
