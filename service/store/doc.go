// Package store is shared by all rooms of the service: connections, transactions and
// their SQL helpers, the keys that seal and sign, actors, idempotency, wakes, traces and
// partitions.
//
// Inputs are a context, an Actor and functions that run statements; outputs are their rows and
// *models.Error. A write is one transaction with all its effects: the record, its log entry,
// notices, events, one delivery per interested address, and the idempotency key with the stored
// response. After the commit the workflows concerned are woken (tx.go). A wake carries no data
// and may be lost: upkeep.Unclaimed finds the work of those that were.
//
// GORM makes the statements of a write of a record from the models, and they are sent with COMMIT. A write that
// reads in between uses Tx.DB. A single read is sent together with the admission of its call (RecordRead).
//
// Its tables are stored_responses and form_keys. It imports models, webhook and service/slots,
// and knows no HTTP except the names of status codes, and no Temporal.
package store
