// Package workflows holds the deterministic code that Temporal runs: what owes,
// waits and tries again.
//
// A workflow is woken by a poke, which says nothing; it asks the database
// through an activity what it owes, has it done, and sleeps or ends. It carries
// ids only: no name, address or secret is in a history or a search attribute.
//
//   - WebhookAddress, webhook-address/{id}: the mailbox of one address, alive
//     while deliveries are pending for it.
//   - Delivery, delivery/{id}: one delivery in trouble, with the retry schedule
//     as durable timers. It listens to the signals redeliver and stop.
//   - WorkOrder, work-order/{id}: one work order from its creation until it is
//     complete or cancelled, with e-mail to people and the reminders of its target
//     date and of a review that waits as durable timers.
//   - Feedback, feedback/{id}: the same for feedback until it is resolved.
//   - Sweep, started by a schedule: pokes what is owed and in nobody's hand.
//   - Housekeeping, started by a schedule: removes what is older than its life.
//
// What flows in: ids, and the results of activities. What flows out: commands to
// Temporal. The package calls no clock, no random source and no network.
package workflows
