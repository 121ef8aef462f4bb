// Package service holds the writes and reads of Millwright as functions, one
// file a subject. Transactions live here and nowhere else.
//
// What flows in: an Actor (an integration called through the API, or a person
// in the app), plain values, and a context. What flows out: records, ids and
// *models.Error. Whoever the actor is, a write passes through the same
// function, so the API and the app cannot differ in rules or effects.
//
// A write is one transaction with everything it means: the record, its history,
// the Log Record, the notices, the events, one delivery for each address that
// gets them, and the idempotency key with the answer. Only after the commit are
// the workflows concerned poked; a poke carries nothing and may be lost, since
// Unclaimed finds whatever is still to be done.
//
// Rows are written through GORM's mapping and carried by pgx batches, so that a
// transaction takes few round trips, and writes that come at the same moment share
// one (group.go, bulk.go); reads are SQL standing beside the function that runs
// it. Who may read or do what is the view node_rights and the conditions in
// access.go, for lists, single reads, writes and deliveries alike.
//
// The package knows no HTTP and no Temporal. Time and randomness are handed in.
package service
