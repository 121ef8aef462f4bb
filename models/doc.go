// Package models is the domain of the service and reads like the specification of
// the integration API: records, their statuses and transitions, scopes and grants,
// event types, limits, error codes, and the migrations of the schema that stores them.
//
// It decides what can be decided without a lookup: whether a status allows an
// operation, which events a transition sends, when the next attempt of a delivery is
// due, when people are reminded, whether a form answer fits its question.
//
//   - limits.go: every limit of the specification and of docs/contract.md
//   - workorder.go: the table of statuses and operations (spec section 3)
//   - errors.go: every error code (spec section 7; docs/contract.md, Errors)
//   - record.go: records as the API shows them; rows.go: as the database stores them
//   - history.go: a work order rebuilt from its history
//
// Inputs and outputs are plain values and *Error. The row types carry GORM tags and
// the records huma's; the package imports neither, and no HTTP, Temporal or SQL other
// than migrations/. It reads no clock and no random source: callers pass both.
package models
