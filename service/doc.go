// Package service is the reads and writes of Millwright as functions. It has no rules: each
// is in a room, a package below this one. Service has a field for each room, so a call shows
// where its rules are: s.Records.CreateWorkOrder.
//
// Inputs are an Actor (an integration that calls the API, or a person in the console), plain
// values and a context; outputs are records, ids and *models.Error. Every kind of actor goes
// through the same functions, so the API and the console cannot differ in rules or effects.
//
// The rooms, from the top; each imports only rooms below it, and its doc.go describes what it
// decides:
//
//	upkeep        retention, partitions, sweeps
//	imports       files that describe an organization
//	pages         views of the console across rooms
//	webhooks      addresses, deliveries, redelivery
//	integrations  credentials, owners, scopes
//	records       work orders and feedback
//	effects       what every write leaves: log, notices, events, deliveries
//	people        people, teams, sign-in, sessions
//	inventory     nodes, permissions on them, forms
//	lists         pages, cursors, sync tokens
//	access        tokens, admission, rights
//	store         connections, transactions, keys, idempotency
//	slots         what an organization has in progress
package service
