// Package e2e tests the whole: the built binary as api and worker, real
// Postgres, real Temporal, receivers in the test. What can break between the
// processes is broken on purpose: they are killed, Temporal is stopped,
// receivers fail and hang.
//
// Each test has an installation of its own (stack_test.go): a database, a
// Temporal namespace, keys, an organization, its processes. So tests share
// nothing but the machine, and those that mostly wait run side by side.
//
// What flows in: DATABASE_URL, TEMPORAL_ADDRESS and DEVSTACK, which `make test`
// sets. What flows out, beside verdicts: latencies and duplicates, with -v.
// Nothing here sleeps: every wait is for a condition and has a limit.
package e2e
