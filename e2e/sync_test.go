package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
)

// syncState is what a client that follows the changes knows: one field of each work order it has
// seen, and the token with which it continues.
type syncState struct {
	field, token string
	records      map[string]string
}

func newSyncState(field string) *syncState {
	return &syncState{field, "2020-01-01T00:00:00Z", map[string]string{}}
}

// next reads the next page of changes. It returns the status, 0 without a response, and whether
// more follow.
func (s *syncState) next(i *integrator, limit int) (status int, more bool) {
	response, err := i.call(http.MethodGet, fmt.Sprintf("/work-orders?limit=%d&changed_since=%s", limit, url.QueryEscape(s.token)), "", nil)
	var page struct {
		Data      []map[string]any `json:"data"`
		SyncToken string           `json:"sync_token"`
		HasMore   bool             `json:"has_more"`
	}
	if err != nil || json.Unmarshal(response.body, &page) != nil {
		return 0, false
	}
	if response.status != http.StatusOK {
		return response.status, false
	}
	for _, record := range page.Data {
		s.records[record["id"].(string)], _ = record[s.field].(string) // null is ""
	}
	s.token = page.SyncToken
	return response.status, page.HasMore
}

// follow reads all changes and returns the last status.
func (s *syncState) follow(i *integrator) int {
	for {
		if status, more := s.next(i, 200); !more {
			return status
		}
	}
}

func (s *syncState) clone() *syncState { return &syncState{s.field, s.token, maps.Clone(s.records)} }
