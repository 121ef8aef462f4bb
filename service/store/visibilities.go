package store

import "sync"

// visibilities remembers what the readers of lists could last see. It is safe for concurrent
// use.
type visibilities struct {
	mu sync.Mutex
	// known is by lists.Query.Digest.
	known map[string]Visibility
}

func (r *visibilities) Last(digest string) (Visibility, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.known[digest]
	return v, ok
}

func (r *visibilities) Remember(digest string, v Visibility) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil || len(r.known) >= maxVisibilities {
		r.known = map[string]Visibility{}
	}
	r.known[digest] = v
}

// Visibility is what must be known before a page is read.
type Visibility struct {
	// XminHorizon is the oldest transaction still running. All earlier ones have ended, so
	// no change can appear below a position below it.
	XminHorizon uint64
	AccessEpoch int
	// Nodes are the visible nodes, some of them twice, nil if they are more than narrowLimit.
	Nodes []string
	// OnlyCreates is true if there may be a node on which the actor has the list's create and
	// not its grant.
	OnlyCreates bool
	// WatermarkNonce and WatermarkXid are the newest watermark, "" and 0 without one.
	WatermarkNonce string
	WatermarkXid   uint64
	WatermarkIsOld bool
	// TokenXid is the xid of the watermark that the request's token names, nil if the
	// database does not have it.
	TokenXid *uint64
	// SinceXid is where the changes since the request's time begin.
	SinceXid uint64
}

// Access returns the part of the visibility that the query of a page by ids depends on.
func (v Visibility) Access() Visibility {
	v.XminHorizon, v.AccessEpoch, v.WatermarkNonce, v.WatermarkXid, v.WatermarkIsOld, v.TokenXid, v.SinceXid = 0, 0, "", 0, false, nil, 0
	return v
}

// maxVisibilities bounds the visibilities that a process remembers to a few megabytes.
const maxVisibilities = 500
