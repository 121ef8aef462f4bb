// Package lists reads pages: cursors, sync tokens and the watermarks they name, filters, and
// the visible nodes that a page depends on. A list is a query that its room makes (NewQuery)
// and List runs. Pages are encoded here.
//
// Inputs are an Actor, a query and a ListRequest; outputs are encoded pages. Its table is
// watermarks. It imports store and access.
package lists
