// Package models is the domain of the service and reads like docs/api.md: records, their statuses and transitions, scopes and grants,
// event types, limits, error codes, and the migrations of the schema that stores them.
//
// It decides what can be decided without a lookup: whether a status allows an
// operation, which events a transition sends, when the next attempt of a delivery is
// due, when people are reminded, whether a form answer fits its question.
//
//   - limits.go: every limit (api.md 8.1)
//   - work_order.go: the table of statuses and operations (api.md 3.2)
//   - errors.go: every error code (api.md 7.2)
//   - record.go: records as the API shows them; rows.go: as the database stores them
//   - history.go: a work order rebuilt from its history
//
// Inputs and outputs are plain values and *Error. The row types carry GORM tags and
// the records huma's; the package imports neither, and no HTTP, Temporal or SQL other
// than migrations/. It reads no clock and no random source: callers pass both.
package models
