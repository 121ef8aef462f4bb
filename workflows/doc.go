// Package workflows is the deterministic code that Temporal runs: it waits,
// retries and reminds.
//
// A wake carries no data: the workflow loads its work through an activity, does
// it, and sleeps or ends. Arguments, histories and search attributes hold ids,
// codes and times only, never a name, an address or a secret.
//
//   - WebhookAddress, webhook-address/{id}: sends everything that goes to one address
//     and turns it off when it fails; open as long as the address exists.
//   - Delivery, delivery/{id}: one delivery whose first attempt failed: an activity that Temporal
//     retries on the retry schedule. Operators redeliver or stop it.
//   - WorkOrder, work-order/{id}: the life of one work order until it is complete or
//     cancelled: its phases with their timers, each transition in the timeline, and
//     updates by which operators act as a person.
//   - Feedback, feedback/{id}: the same for feedback until it is resolved.
//   - Mail, mail/{organization}: sends the e-mail to people of one organization; open while
//     mail waits.
//   - Sweep, started by a schedule each hour: wakes workflows whose work is unclaimed.
//   - Housekeeping, started by a schedule: removes expired rows.
//
// To read this package, start with TestExampleWorkOrder (example_test.go), then work_order.go.
//
// In: ids and the results of activities. Out: commands to Temporal. The package
// may not use a clock, a random source, the network, SQL or goroutines; recorded
// histories in testdata check that changes still replay.
package workflows
