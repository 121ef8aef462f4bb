package service

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// ListRequest selects a page of a list.
type ListRequest struct {
	// Limit is the size of the page; values over models.MaxPageSize are capped.
	Limit int
	// Cursor is the next_cursor of the previous page, "" for the first page.
	Cursor string
	// ChangedSince is an RFC 3339 time or a sync token, "" for newest first.
	ChangedSince string
	// IDs restrict the list to these records; without any it has all.
	IDs []string
}

// Page is one page of a list.
type Page[T any] struct {
	Data       []T    `json:"data" nullable:"false" doc:"The records of this page, newest first; with changed_since, in order of change."`
	HasMore    bool   `json:"has_more" doc:"Whether another page follows."`
	NextCursor string `json:"next_cursor,omitempty" doc:"Pass it as cursor, with the same filters, to get the next page; absent on the last one."`
	SyncToken  string `json:"sync_token,omitempty" doc:"With changed_since: pass it as the next changed_since to see every later change."`
}

// pageEnd is what follows the records of a page.
type pageEnd struct {
	HasMore               bool
	NextCursor, SyncToken string
}

// rowPointer is a pointer to a row of a list: it knows its position and its record.
type rowPointer[Row any] interface {
	*Row
	position() position
	record() any
}

// position is a row's place in a list. Lists are ordered by id, with changed_since by
// the transaction that last changed the row and then by id.
type position struct {
	Xid uint64
	ID  string
}

// list reads a page and encodes it. The query of a page depends on what its reader may
// see. It is sent together with the query of that, as it was for the last page, and again
// if that has changed. Errors: invalid_request, cursor_expired, unavailable.
func list[Row any, P rowPointer[Row]](ctx context.Context, s *Service, q *listQuery, request ListRequest) ([]byte, error) {
	limit := min(request.Limit, models.MaxPageSize)
	if len(request.IDs) > 0 {
		q.ofIDs(request.IDs)
	}
	start, err := newPageStart(s, request, q.digest)
	if err != nil {
		return nil, err
	}
	guess, guessed := s.visibilities.last(q.digest)
	if q.grant == "" {
		guess, guessed = visibility{}, true // the page does not depend on the visibility
	}
	guessed = guessed && !start.changes // a page of changes needs the xmin horizon
	var v visibility
	var found []Row
	return read(ctx, s, q.actor.OrganizationID, func() ([]byte, error) {
		return encodePage[Row, P](ctx, s, q, start, v, found, limit)
	}, func(pipeline *pgx.Batch) error {
		q.queueVisibility(pipeline, &v, start)
		if guessed {
			queuePage(pipeline, &found, q, guess, start, limit)
		}
		return nil
	}, func(pipeline *pgx.Batch) error {
		if err := start.resolve(v, s.Now()); err != nil {
			return err
		}
		slices.Sort(v.Nodes) // as they come in any order
		if access := v.access(); !guessed || !reflect.DeepEqual(access, guess) {
			s.visibilities.remember(q.digest, access)
			queuePage(pipeline, &found, q, v, start, limit)
		}
		return nil
	})
}

// encodePage encodes the rows found as a page; there is one more than the
// limit if another page follows. Errors: unavailable.
func encodePage[Row any, P rowPointer[Row]](ctx context.Context, s *Service, q *listQuery, start *pageStart, v visibility, found []Row, limit int) (body []byte, err error) {
	page := pageEnd{HasMore: len(found) > limit}
	if err := showNodes[Row, P](found); err != nil {
		return nil, err
	}
	found = found[:min(limit, len(found))]
	var last position
	if len(found) > 0 {
		last = P(&found[len(found)-1]).position()
	}
	if start.changes {
		named, err := s.watermarkAbove(ctx, v, last)
		if err != nil {
			return nil, err
		}
		end := last
		if !page.HasMore {
			end = position{Xid: min(v.XminHorizon, named.Xid)}
		}
		page.SyncToken = start.changesToken(kindSync, end, named, v, q.digest, s.Now())
		if page.HasMore {
			page.NextCursor = start.changesToken(kindChangesCursor, end, named, v, q.digest, s.Now())
		}
	} else if page.HasMore {
		page.NextCursor = cursorToken{Kind: kindCursor, ID: last.ID, Filter: q.digest}.encode(s.Vault)
	}
	body = append(make([]byte, 0, (len(found)+1)*recordSize), `{"data":[`...)
	for n := range found {
		if n > 0 {
			body = append(body, ',')
		}
		if body, err = appendRecord(body, P(&found[n]).record()); err != nil {
			return nil, err
		}
	}
	return page.appendJSON(append(body, ']')), nil
}

// queuePage adds the query of a page. One with filters is planned for their values: how
// many records a node or a time has decides how the page is found.
func queuePage[Row any](pipeline *pgx.Batch, into *[]Row, q *listQuery, v visibility, start *pageStart, limit int) {
	if q.hasValues {
		pipeline.Queue(`SELECT set_config('plan_cache_mode', 'force_custom_plan', true)`)
	}
	sql, args := numbered(q.sql(v, start, limit), q.args)
	queueAll(pipeline, into, sql, args...)
}

// watermarkAbove returns the watermark that the tokens of a page name: the newest one, or a new
// one if it is old or not above the page's last row. Errors: unavailable.
func (s *Service) watermarkAbove(ctx context.Context, v visibility, last position) (watermark, error) {
	if v.WatermarkIsOld || last.Xid >= v.WatermarkXid {
		return s.newWatermark(ctx)
	}
	return watermark{Nonce: v.WatermarkNonce, Xid: v.WatermarkXid}, nil
}

// appendJSON writes what follows the records of a Page.
func (e pageEnd) appendJSON(b []byte) []byte {
	b = strconv.AppendBool(append(b, `,"has_more":`...), e.HasMore)
	if e.NextCursor != "" {
		b = appendText(b, `,"next_cursor":`, e.NextCursor)
	}
	if e.SyncToken != "" {
		b = appendText(b, `,"sync_token":`, e.SyncToken)
	}
	return append(b, '}')
}

// decodePage decodes the page that a list returned, or returns its error.
func decodePage[T any](body []byte, err error) (page Page[T], _ error) {
	if err != nil {
		return page, err
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return page, fmt.Errorf("decode a page: %w", err)
	}
	return page, nil
}
