// Package imports makes an organization what a file says: it reads and checks the file, finds
// the differences and writes them in one transaction, with the effects that people would have
// caused.
//
// Inputs are the bytes of a file; outputs are the ids of its keys, or every problem in it. Its
// tables are import_keys and import_digests; it also writes the tables of the rooms below. It imports
// webhooks, integrations, people, inventory and store.
package imports
