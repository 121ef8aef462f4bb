// Package activities is what workflows do to the world: claim and send
// deliveries, record their attempts, tell people by e-mail, look at records,
// look for what is owed, remove what is older than its life.
//
// What flows in: ids from workflows. What flows out: small results without
// names, addresses or secrets, since they are kept in histories. All rules and
// all SQL stay in service; this package brings them together with the guarded
// HTTP client, the mail client and Temporal's heartbeats. An activity may run twice: each
// checks the database first, and an attempt is recorded once.
package activities
