// Package effects is what every write of a record leaves besides the record: its log entry,
// notices, events, and one delivery per interested address, all queued in the transaction of the
// write (Queue). It also hands out the e-mails about notices.
//
// Inputs are a transaction and a Change; outputs are rows. Its tables are log, notices, events,
// open_deliveries and dirty_records, to which other rooms add through it. It imports people,
// access and store.
package effects
