package lists

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
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
	// Found is true if a search found the IDs: the filter has its text, and the next page may find
	// more, so no cursor is bound to them.
	Found bool
}

// Page is one page of a list.
type Page[T any] struct {
	Data       []T    `json:"data" nullable:"false" doc:"The records of this page, newest first; with changed_since, in order of change."`
	HasMore    bool   `json:"has_more" doc:"Whether another page follows."`
	NextCursor string `json:"next_cursor,omitempty" doc:"Pass it as cursor, with the same filters, to get the next page; absent on the last one."`
	SyncToken  string `json:"sync_token,omitempty" doc:"With changed_since: pass it as the next changed_since to see every later change."`
}

// rowPointer is a pointer to a row of a list: it knows its position and its record.
type rowPointer[Row any] interface {
	*Row
	Position() Position
	Record() any
}

// Position is a row's place in a list. Lists are ordered by id, with changed_since by
// the transaction that last changed the row and then by id.
type Position struct {
	Xid uint64
	ID  string
}

// List reads a page and encodes it. The query of a page depends on what its reader may
// see. It is sent together with the query of that, as it was for the last page, and again
// if that has changed. Errors: invalid_request, cursor_expired, unavailable.
func List[Row any, P rowPointer[Row]](ctx context.Context, s *store.Store, q *Query, request ListRequest) ([]byte, error) {
	limit := min(request.Limit, models.MaxPageSize)
	if len(request.IDs) > 0 {
		q.ofIDs(request.IDs, request.Found)
	}
	start, err := NewPageStart(s, request, q.Digest)
	if err != nil {
		return nil, err
	}
	guess, guessed := s.Visibilities.Last(q.Digest)
	if q.grant == "" {
		guess, guessed = store.Visibility{}, true // the page does not depend on the visibility
	}
	guessed = guessed && !start.changes // a page of changes needs the xmin horizon
	var v store.Visibility
	var found []Row
	return store.ReadInRounds(ctx, s, q.Actor.OrganizationID, store.Rounds{func(pipeline *pgx.Batch) error {
		q.QueueVisibility(pipeline, &v, start)
		if guessed {
			queuePage(pipeline, &found, q, guess, start, limit)
		}
		return nil
	}, func(pipeline *pgx.Batch) error {
		if err := start.resolve(v, s.Now()); err != nil {
			return err
		}
		slices.Sort(v.Nodes) // as they come in any order
		if access := v.Access(); !guessed || !reflect.DeepEqual(access, guess) {
			s.Visibilities.Remember(q.Digest, access)
			queuePage(pipeline, &found, q, v, start, limit)
		}
		return nil
	}}, func() ([]byte, error) {
		return encodePage[Row, P](ctx, s, q, start, v, found, limit)
	})
}

// encodePage encodes the rows found as a page; there is one more than the
// limit if another page follows. Errors: unavailable.
func encodePage[Row any, P rowPointer[Row]](ctx context.Context, s *store.Store, q *Query, start *PageStart, v store.Visibility, found []Row, limit int) ([]byte, error) {
	page := Page[any]{HasMore: len(found) > limit}
	if err := ShowShared[Row, P](found); err != nil {
		return nil, err
	}
	found = found[:min(limit, len(found))]
	var last Position
	if len(found) > 0 {
		last = P(&found[len(found)-1]).Position()
	}
	if start.changes {
		named, err := watermarkAbove(ctx, s, v, last)
		if err != nil {
			return nil, err
		}
		end := last
		if !page.HasMore {
			end = Position{Xid: min(v.XminHorizon, named.Xid)}
		}
		page.SyncToken = start.changesToken(KindSync, end, named, v, q.Digest, s.Now())
		if page.HasMore {
			page.NextCursor = start.changesToken(kindChangesCursor, end, named, v, q.Digest, s.Now())
		}
	} else if page.HasMore {
		page.NextCursor = CursorToken{Kind: KindCursor, ID: last.ID, Filter: q.Digest}.Encode(s.Vault)
	}
	return encodeRecords[Row, P](found, page)
}

const pageStart = `{"data":[`

// encodeRecords encodes the page with the records of the rows.
func encodeRecords[Row any, P rowPointer[Row]](found []Row, page Page[any]) ([]byte, error) {
	page.Data = []any{}
	rest, err := store.Encode(page)
	if err != nil {
		return nil, err
	}
	body := []byte(pageStart)
	for n := range found {
		if n > 0 {
			body = append(slices.Grow(body, (len(found)-n)*len(body)/n), ',') // records have about the same size
		}
		if body, err = appendRecord(body, P(&found[n])); err != nil {
			return nil, err
		}
	}
	return append(body, rest[len(pageStart):]...), nil
}

// appendRecord appends the JSON of a row's record. A row that appends it itself does so faster than the library.
func appendRecord(b []byte, row interface{ Record() any }) ([]byte, error) {
	if appender, ok := row.(interface{ AppendJSON(b []byte) []byte }); ok {
		return appender.AppendJSON(b), nil
	}
	record, err := store.Encode(row.Record())
	return append(b, record...), err
}

// queuePage adds the query of a page. One with filters is planned for their values: how
// many records a node or a time has decides how the page is found.
func queuePage[Row any](pipeline *pgx.Batch, into *[]Row, q *Query, v store.Visibility, start *PageStart, limit int) {
	if q.hasValues {
		pipeline.Queue(`SELECT set_config('plan_cache_mode', 'force_custom_plan', true)`)
	}
	store.QueueAll(pipeline, into, q.sql(v, start, limit), q.Args)
}

// watermarkAbove returns the watermark that the tokens of a page name: the newest one, or a new
// one if it is old or not above the page's last row. Errors: unavailable.
func watermarkAbove(ctx context.Context, s *store.Store, v store.Visibility, last Position) (watermark, error) {
	if v.WatermarkIsOld || last.Xid >= v.WatermarkXid {
		return newWatermark(ctx, s)
	}
	return watermark{Nonce: v.WatermarkNonce, Xid: v.WatermarkXid}, nil
}

// DecodePage decodes the page that a list returned, or returns its error.
func DecodePage[T any](body []byte, err error) (page Page[T], _ error) {
	if err != nil {
		return page, err
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return page, fmt.Errorf("decode a page: %w", err)
	}
	return page, nil
}
