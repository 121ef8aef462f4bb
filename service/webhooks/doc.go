// Package webhooks decides what is sent to webhook addresses: addresses and their health,
// claims and attempts of deliveries under a lease, shut-off, redelivery, searches and figures.
//
// Inputs are an Actor, or a worker process's lease and attempts; outputs are addresses,
// deliveries and what to do next. Its tables are webhooks, webhook_health, webhook_leases,
// open_deliveries, deliveries, attempts, redeliveries, webhook_tests and delivery_hours. It imports
// integrations, effects, people, access and store.
package webhooks
