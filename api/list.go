package api

import "millwright/service/lists"

// ListInput is part of the input of every list.
type ListInput struct {
	ReadInput
	IDs          []string `query:"id" maxItems:"100" pattern:"^[a-z]+_[0-7][0-9a-hjkmnp-tv-z]{25}$" patternDescription:"an id" doc:"Only the records with these ids, at most 100, separated by commas. Ids of records that the integration may not read, and unknown ones, are ignored."`
	Limit        int      `query:"limit" minimum:"1" default:"50" doc:"Page size; values over 200 are capped."`
	Cursor       string   `query:"cursor" maxLength:"500" doc:"The next_cursor of the previous page; the filters must be the same."`
	ChangedSince string   `query:"changed_since" maxLength:"500" doc:"An RFC 3339 time or a sync_token: only records changed since then, oldest change first. With a time, records that changed shortly before it may be listed too."`
}

func (in ListInput) request() lists.ListRequest {
	return lists.ListRequest{Limit: in.Limit, Cursor: in.Cursor, ChangedSince: in.ChangedSince, IDs: in.IDs}
}

// idInput is the input of reads of one node, form, person or team.
type idInput struct {
	ReadInput
	ID string `path:"id" doc:"Identifier."`
}
