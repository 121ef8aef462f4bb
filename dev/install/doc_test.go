// Package install tests what docs/running.md says an operator installs.
//
// It loads docker-compose.yml as docker compose does, and checks the services against each
// other and against the programs that they run. That needs no container engine.
// TestTheContainersRun, which make compose-test runs, starts them and does what running.md
// says. TestTheUnitsRun, which make systemd-test runs, does so for the systemd units.
package install
