// Package activities performs the work of the workflows: it claims and sends
// deliveries, records their attempts, sends notices by e-mail, loads records,
// wakes workflows whose work is unclaimed and removes expired rows.
//
// In: ids from workflows. Out: small results without names, addresses or secrets,
// since histories store them. All rules and SQL are in service; this package
// combines them with the guarded HTTP client, the mail client and Temporal's
// heartbeats.
//
// An activity may run twice or be cut off anywhere: each checks the database
// first, and an attempt is recorded once.
//
// The package may use service, models, webhook and mail; it knows no workflow.
package activities
