// Package access decides who calls and what they may read or do: tokens, the admission of
// calls and their limits, people as actors, and the rights as SQL conditions, which lists,
// single reads, writes and deliveries share (access.go, person_rights.go).
//
// Inputs are tokens, client addresses and ids; outputs are Callers, Rates and actors. Its tables
// are call_counts and revoked_tokens; it reads integrations, plans, organizations
// and people. It imports store.
package access
