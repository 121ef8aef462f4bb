// Package compose tests docker-compose.yml and the Dockerfile with the programs they
// run. It loads the file as docker compose does, and runs the command, environment
// and health check of every service as processes, in the order that depends_on gives.
//
// That needs no container engine. TestTheContainersRun, which make compose-test runs,
// tests what only an engine shows: users and file modes, networks, limits, entry points.
package compose
