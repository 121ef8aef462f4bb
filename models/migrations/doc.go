// Package migrations is the database schema: numbered SQL files, embedded in the
// binary. `millwright migrate` applies the ones the database lacks, in order; api and
// worker refuse a schema older than the binary.
//
// The first ten are the schema of version 1.0.0, by topic. They document the tables. Files are
// named NNNNN_topic.sql and have goose's form, with an Up part only. A file that has been
// released never changes, except for its comments: a change of the schema is a new file.
//
// The schema also enforces rules that no writer may forget: constraints and triggers
// end the epochs of tokens and sync tokens, keep the inventory's closure table and set the
// change position of each changed row.
//
// A migration that goes through a large table runs without a transaction, in batches
// that commit, builds indexes concurrently, and can be repeated after a crash.
//
// The package has one output, Files, and imports only embed.
package migrations
