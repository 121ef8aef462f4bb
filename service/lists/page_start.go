package lists

import (
	"time"

	"millwright/models"
	"millwright/service/store"
)

// PageStart is where a page begins.
type PageStart struct {
	// changes is true if the list is in the order of changes.
	changes bool
	At      Position
	// since is a time whose position resolve finds.
	since *models.Time
	// token is what a page of changes continues, nil for the first one since a time.
	token *CursorToken
	// keys sign the tokens of the page.
	keys *store.Vault
}

// NewPageStart reads where a page begins. Errors: invalid_request.
func NewPageStart(s *store.Store, request ListRequest, digest string) (*PageStart, error) {
	start := &PageStart{changes: request.ChangedSince != "", keys: s.Vault}
	if start.changes {
		if err := start.parseChangedSince(request.ChangedSince, digest); err != nil {
			return nil, err
		}
	}
	if request.Cursor == "" {
		return start, nil
	}
	kind := KindCursor
	if start.changes {
		kind = kindChangesCursor
	}
	c, ok := ParseCursorToken(request.Cursor, s.Vault)
	if !ok || c.Kind != kind {
		return nil, models.BadParameter("cursor", "The cursor is not one that this list returned.")
	}
	if c.Filter != digest {
		return nil, models.BadParameter("cursor", "The cursor belongs to another list or to other filters.")
	}
	start.At, start.since = Position{c.Xid, c.ID}, nil
	if start.changes {
		start.token = &c
	}
	return start, nil
}

func (p *PageStart) parseChangedSince(text, digest string) error {
	if since, err := models.ParseTime(text); err == nil {
		p.since = &since
		return nil
	}
	c, ok := ParseCursorToken(text, p.keys)
	if !ok || c.Kind != KindSync {
		return models.BadTime("changed_since", text, "a time of RFC 3339 or a sync_token of this list")
	}
	if c.Filter != digest {
		return models.BadParameter("changed_since", "The sync_token belongs to another list or to other filters.")
	}
	p.At, p.token = Position{c.Xid, c.ID}, &c
	return nil
}

// resolve checks the token against the visibility and finds the position of a time.
// Errors: cursor_expired.
func (p *PageStart) resolve(v store.Visibility, now time.Time) error {
	if p.token != nil {
		expired := now.Sub(time.Unix(p.token.Issued, 0)) > models.SyncTokenLifetime
		known := v.TokenXid != nil && p.At.Xid <= *v.TokenXid
		if expired || !known || p.token.Epoch != v.AccessEpoch {
			return models.Errorf(models.CodeCursorExpired,
				"The sync_token has expired, or what the integration may read has changed since, or the database was restored. Start over without it.")
		}
	}
	if p.since != nil {
		p.At = Position{Xid: v.SinceXid}
	}
	return nil
}

// changesToken returns a token for a page of changes that ends at the position.
func (p *PageStart) changesToken(kind string, end Position, named watermark, v store.Visibility, digest string, now time.Time) string {
	return CursorToken{
		Kind: kind, Xid: end.Xid, ID: end.ID, Filter: digest,
		Epoch: v.AccessEpoch, Watermark: named.Nonce, Issued: now.Unix(),
	}.Encode(p.keys)
}
