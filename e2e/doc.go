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
// The slowest tests of all packages, each with what no other one proves:
//
//   - TestAWorkerWhoseNamespaceIsGoneEnds (3 minutes): the SDK's own limit for a lost namespace ends the process
//   - TestFaultStorm (30 s and its audit): kills of everything at once lose and repeat nothing
//   - TestFaultWorkerCutOffFromTemporal (80 s): a worker without Temporal gives its addresses up
//   - TestDocsPageInABrowser (api, 35 s): the documentation is accessible at every width
//   - TestFaultWorkerKilledWhileDelivering (30 s): deliveries in flight are sent again, in order
//   - TestAnOperatorWorksInTheTemporalUI (30 s): the steps of the operators' guides, by clicks
//   - TestMailServerDown, TestFaultTemporalDown (25 s): a worker, or Temporal, is killed during an outage
//   - TestNothingPersonalInLogsHistoriesAndMetrics (23 s): in all that a run leaves
//   - TestFaultDatabaseDoesNotAnswer, TestFaultCommitHangs (20 s): a Postgres that is up and silent
//   - TestCellsBehindOneAddress (19 s): two installations behind the router of docs/scaling.md
//   - TestAFailoverToALaggingStandbySkipsNoChange (19 s): sync tokens after a real promotion
//   - TestFaultDiskIsFull (17 s): Postgres without room for its log
//   - TestAttemptEnds (activities, 16 s): every reason why nothing is to be retried
//   - TestFaultOneOfTwoWorkersDies (16 s): the other one takes over
//   - TestListsArePaged (api, 15 s): each list, while its records change
//   - TestPagesOfTheDemo (console, 15 s): each page, as the pictures of docs/console show it
//   - TestFaultRollingRestart (14 s): an upgrade of all processes under load
//   - TestHostileTextsAreOnlyText (console, 13 s): each page and download as an attacker would fill it
//   - TestNoChangeIsLost (service/lists, 11 s): a reader of changes next to random writers
//
// No test sleeps: every wait is for a condition and has a limit. Tests talk to the
// product through HTTP, its commands, its database and Temporal; of its packages they
// import only models, webhook, workflows (for names and ids), and those for tests:
// mail/mailtest, and console/consoletest for journeys in a browser (console_test.go).
package e2e
