package service

import (
	"time"

	"millwright/models"
)

// pageStart is where a page begins.
type pageStart struct {
	// changes says that the list is in order of changes.
	changes bool
	at      position
	// since is a time whose position is found with the view.
	since *models.Time
	// token is the mark the start was read from, nil where there was none.
	token *cursorToken
	// keys sign the marks of the page.
	keys *Vault
}

// pageStart reads where a page begins. Errors: invalid_request.
func (s *Service) pageStart(request ListRequest, digest string) (*pageStart, error) {
	begin := &pageStart{changes: request.ChangedSince != "", keys: s.Vault}
	if begin.changes {
		if err := begin.parseChangedSince(request.ChangedSince, digest); err != nil {
			return nil, err
		}
	}
	if request.Cursor == "" {
		return begin, nil
	}
	kind := kindCursor
	if begin.changes {
		kind = kindChangesCursor
	}
	m, ok := parseCursorToken(request.Cursor, s.Vault)
	if !ok || m.Kind != kind {
		return nil, models.Errorf(models.CodeInvalidRequest, "The cursor is not one that this list returned.")
	}
	if m.Filter != digest {
		return nil, models.Errorf(models.CodeInvalidRequest, "The cursor belongs to another list, or to one with other filters.")
	}
	begin.at, begin.since = position{m.Xid, m.ID}, nil
	if begin.changes {
		begin.token = &m
	}
	return begin, nil
}

func (b *pageStart) parseChangedSince(text, digest string) error {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		since := models.TimeOf(at)
		b.since = &since
		return nil
	}
	m, ok := parseCursorToken(text, b.keys)
	if !ok || m.Kind != kindSyncToken {
		return models.Errorf(models.CodeInvalidRequest, "changed_since takes an RFC 3339 time or a sync_token of this list.")
	}
	if m.Filter != digest {
		return models.Errorf(models.CodeInvalidRequest, "The sync_token belongs to another list, or to one with other filters.")
	}
	b.at, b.token = position{m.Xid, m.ID}, &m
	return nil
}

// finishStatements checks the mark against the view and finds the position of a time.
// Errors: cursor_expired.
func (b *pageStart) resolve(v view, now time.Time) error {
	if b.token != nil {
		expired := now.Sub(time.Unix(b.token.Issued, 0)) > models.SyncTokenLifetime
		// A position ahead of the horizon was given before the database was set back to a backup.
		if expired || b.token.Epoch != v.AccessEpoch || b.token.Cluster != v.Cluster || b.at.Xid > v.Horizon {
			return models.Errorf(models.CodeCursorExpired,
				"The sync_token is too old, or what the integration may read was changed since. Start over without it.")
		}
	}
	if b.since != nil {
		b.at = position{Xid: v.Horizon}
		if v.Begin != nil {
			b.at.Xid = min(*v.Begin, v.Horizon)
		}
	}
	return nil
}

// cursor is the next_cursor of a page that ended at the position.
func (b *pageStart) cursor(end position, v view, digest string, now time.Time) string {
	if !b.changes {
		return cursorToken{Kind: kindCursor, ID: end.ID, Filter: digest}.encode(b.keys)
	}
	return cursorToken{Kind: kindChangesCursor, Xid: end.Xid, ID: end.ID, Filter: digest, Epoch: v.AccessEpoch, Cluster: v.Cluster, Issued: now.Unix()}.encode(b.keys)
}

// syncToken is the sync_token of a page that ended at the position.
func (b *pageStart) syncToken(end position, v view, digest string, now time.Time) string {
	return cursorToken{Kind: kindSyncToken, Xid: end.Xid, ID: end.ID, Filter: digest, Epoch: v.AccessEpoch, Cluster: v.Cluster, Issued: now.Unix()}.encode(b.keys)
}
