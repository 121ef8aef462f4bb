// Package e2e tests the whole system: the built binary as api and worker, real
// Postgres, real Temporal, and receivers in the test. The TestFault tests break what
// can break between the processes: they kill them, stop Temporal, and make receivers
// fail and hang.
//
// Each test has its own installation (harness_test.go): a database, a Temporal
// namespace, keys, an organization and its processes. Tests share only the machine:
// they run in parallel, but for those that measure and for `make faults`.
//
// Input: DATABASE_URL, TEMPORAL_ADDRESS and DEVSTACK, which `make test` sets. Output,
// besides verdicts: latencies and duplicates with -v, and the report of `make
// faults`.
//
// No test sleeps: every wait is for a condition and has a limit. Tests talk to the
// product through HTTP, its commands, its database and Temporal; of its packages they
// import only models, webhook, workflows (for names and ids), and those for tests:
// mail/mailtest, and console/consoletest for journeys in a browser (console_test.go).
package e2e
