// Package records decides what happens to work orders and feedback: creation, changes, answers,
// completion, review, holds and cancels with their rules, comments, single reads, lists, searches and
// histories, and what their workflows read.
//
// Inputs are an Actor, a Key and the fields of a change; outputs are WriteResults and
// encoded records. Its tables are work_orders, work_order_assignees, answers, feedback, comments
// and the tables that searches read. It imports effects, people, inventory, lists, access and store.
package records
