// Package batch runs writes in shared transactions (group commit) and lookups in
// shared round trips.
package batch
