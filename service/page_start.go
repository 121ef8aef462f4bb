package service

import (
	"time"

	"millwright/models"
)

// pageStart is where a page begins.
type pageStart struct {
	// changes is true if the list is in the order of changes.
	changes bool
	at      position
	// since is a time whose position resolve finds.
	since *models.Time
	// token is what a page of changes continues, nil for the first one since a time.
	token *cursorToken
	// keys sign the tokens of the page.
	keys *Vault
}

// newPageStart reads where a page begins. Errors: invalid_request.
func newPageStart(s *Service, request ListRequest, digest string) (*pageStart, error) {
	start := &pageStart{changes: request.ChangedSince != "", keys: s.Vault}
	if start.changes {
		if err := start.parseChangedSince(request.ChangedSince, digest); err != nil {
			return nil, err
		}
	}
	if request.Cursor == "" {
		return start, nil
	}
	kind := kindCursor
	if start.changes {
		kind = kindChangesCursor
	}
	c, ok := parseCursorToken(request.Cursor, s.Vault)
	if !ok || c.Kind != kind {
		return nil, models.Errorf(models.CodeInvalidRequest, "The cursor is not one that this list returned.")
	}
	if c.Filter != digest {
		return nil, models.Errorf(models.CodeInvalidRequest, "The cursor belongs to another list or to other filters.")
	}
	start.at, start.since = position{c.Xid, c.ID}, nil
	if start.changes {
		start.token = &c
	}
	return start, nil
}

func (p *pageStart) parseChangedSince(text, digest string) error {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		since := models.TimeOf(at)
		p.since = &since
		return nil
	}
	c, ok := parseCursorToken(text, p.keys)
	if !ok || c.Kind != kindSync {
		return models.Errorf(models.CodeInvalidRequest, "changed_since must be an RFC 3339 time or a sync_token of this list.")
	}
	if c.Filter != digest {
		return models.Errorf(models.CodeInvalidRequest, "The sync_token belongs to another list or to other filters.")
	}
	p.at, p.token = position{c.Xid, c.ID}, &c
	return nil
}

// resolve checks the token against the visibility and finds the position of a time.
// Errors: cursor_expired.
func (p *pageStart) resolve(v visibility, now time.Time) error {
	if p.token != nil {
		expired := now.Sub(time.Unix(p.token.Issued, 0)) > models.SyncTokenLifetime
		known := v.TokenXid != nil && p.at.Xid <= *v.TokenXid
		if expired || !known || p.token.Epoch != v.AccessEpoch {
			return models.Errorf(models.CodeCursorExpired,
				"The sync_token has expired, or what the integration may read has changed since, or the database was restored. Start over without it.")
		}
	}
	if p.since != nil {
		p.at = position{Xid: v.SinceXid}
	}
	return nil
}

// changesToken returns a token for a page of changes that ends at the position.
func (p *pageStart) changesToken(kind string, end position, named watermark, v visibility, digest string, now time.Time) string {
	return cursorToken{
		Kind: kind, Xid: end.Xid, ID: end.ID, Filter: digest,
		Epoch: v.AccessEpoch, Watermark: named.Nonce, Issued: now.Unix(),
	}.encode(p.keys)
}
