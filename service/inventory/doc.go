// Package inventory decides what the tree of nodes is, which permissions are given on it and
// which forms there are: reads of nodes for integrations and people, searches, changes of the
// tree, assignments and the right to give them, definitions and forms.
//
// Inputs are an Actor and ids; outputs are records and encoded pages. Its tables are
// inventory_nodes, inventory_closure, moved_nodes, assignments, permission_definitions, forms and
// questions. It imports lists, access and store.
package inventory
