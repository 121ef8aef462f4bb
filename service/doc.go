// Package service is the reads and writes of Millwright as functions, one topic per
// file: rules and SQL. Transactions live here and nowhere else.
//
// Inputs are an Actor (an integration that calls the API, or a person in the console),
// plain values and a context; outputs are records, ids and *models.Error. Every kind
// of actor goes through the same functions, so the API and the console cannot differ in
// rules or effects.
//
// A write is one transaction with all its effects: the record, its history entry, the
// Log Record, notices, events, one delivery per interested address, and the
// idempotency key with the stored response. After the commit the workflows concerned
// are woken (tx.go). A wake carries no data and may be lost: Unclaimed finds the work
// of those that were.
//
// Writes that are frequent share transactions, and single reads share round trips:
// package service/batch, whose statements take arrays of rows. The INSERT and UPDATE
// of a model are made from its GORM schema (model_statements.go). Reads are SQL next to
// the function that runs them. The view node_rights and the conditions in access.go
// decide who may read or do what, for lists, single reads, writes and deliveries alike.
//
// The package imports models, webhook and service/batch. It knows no HTTP except the
// names of status codes, and no Temporal: it wakes workflows through a Waker. The clock
// and the source of randomness are options.
package service
