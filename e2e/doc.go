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
// The slowest tests of all packages, next to others, each with what no other one proves:
//
//   - TestAWorkerWhoseNamespaceIsGoneEnds (130 s): the SDK's own limit for a lost namespace ends the process
//   - TestFaultStorm (95 s, 30 of them the storm): kills of everything at once lose and repeat nothing
//   - TestFaultWorkerCutOffFromTemporal (78 s): a worker without Temporal gives its addresses up
//   - TestAnOperatorWorksInTheTemporalUI (51 s): the steps of the operators' guides, by clicks
//   - TestFaultDatabaseDoesNotAnswer (34 s), TestFaultCommitHangs (26 s): a Postgres that is up and silent
//   - TestPostmanCollection (33 s): newman runs every request of the collection
//   - TestFaultWorkerKilledWhileDelivering (30 s): the other worker sends what was in flight again, in order
//   - TestNothingPersonalInLogsHistoriesAndMetrics (28 s): in all that a run leaves
//   - TestFaultTemporalDown (28 s), TestMailServerDown (17 s): Temporal, or a worker, is killed during an outage
//   - TestConsoleJourneys (23 s): the console of real processes, by mouse and by keyboard
//   - TestEveryWriteInEveryWay (19 s): API, console, commands and Temporal's UI do the same
//   - TestFaultDiskIsFull (18 s): Postgres without room for its log
//   - TestCellsBehindOneAddress (17 s): two installations behind the router of docs/scaling.md
//   - TestPagesOfTheDemo (console, 15 s): each page, as the pictures of docs/console show it
//   - TestWorkersOfTwoVersions (14 s): open workflows move between builds, and back
//   - TestFaultRollingRestart (13 s): an upgrade of all processes under load
//   - TestHostileTextsAreOnlyText (console, 13 s): each page and download as an attacker would fill it
//   - TestAMailServerThatHangsForOneOrganization (13 s): the mail of others goes on
//   - TestAFailoverToALaggingStandbySkipsNoChange (12 s): sync tokens after a real promotion
//
// No test sleeps: every wait is for a condition and has a limit. Tests talk to the
// product through HTTP, its commands, its database and Temporal; of its packages they
// import only models, webhook, workflows (for names and ids), and those for tests:
// mail/mailtest, and console/consoletest for journeys in a browser (console_test.go).
package e2e
