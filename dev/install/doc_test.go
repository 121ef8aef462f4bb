// Package install tests what docs/running.md says an operator installs.
//
// It loads docker-compose.yml as docker compose does, and runs the command, environment
// and health check of every service as processes, in the order that depends_on gives.
// That needs no container engine. TestTheContainersRun, which make compose-test runs,
// tests what only an engine shows: users and file modes, networks, limits, entry points.
// TestTheUnitsRun, which make systemd-test runs, does so for the systemd units.
package install
