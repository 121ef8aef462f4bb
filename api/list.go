package api

import (
	"github.com/danielgtaylor/huma/v2"

	"millwright/service/lists"
)

// ListInput is part of the input of every list.
type ListInput struct {
	ReadInput
	IDs          []idParam `query:"id" maxItems:"100" doc:"Only the records with these ids, at most 100, separated by commas. Ids of records that the integration may not read, and unknown ones, are ignored."`
	Limit        int       `query:"limit" minimum:"1" default:"50" doc:"Page size; values over 200 are capped."`
	Cursor       string    `query:"cursor" minLength:"1" maxLength:"500" doc:"The next_cursor of the previous page; the filters must be the same."`
	ChangedSince string    `query:"changed_since" minLength:"1" maxLength:"500" doc:"An RFC 3339 time or a sync_token: only records changed since then, oldest change first. With a time, records that changed shortly before it may be listed too."`
}

func (in ListInput) request() lists.ListRequest {
	request := lists.ListRequest{Limit: in.Limit, Cursor: in.Cursor, ChangedSince: in.ChangedSince}
	for _, id := range in.IDs {
		request.IDs = append(request.IDs, string(id))
	}
	return request
}

// idParam is a query parameter that is an id, or one of several.
type idParam string

// Schema returns the form of an id, as models.IsID checks it.
func (idParam) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Pattern: "^[a-z]+_[0-7][0-9a-hjkmnp-tv-z]{25}$", PatternDescription: "an id"}
}

// idInput is the input of reads of one node, form, person or team.
type idInput struct {
	ReadInput
	ID string `path:"id" doc:"Identifier."`
}
