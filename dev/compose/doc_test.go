// Package compose tests docker-compose.yml and the Dockerfile with the programs they
// run. It loads the file as docker compose does, and runs the command, environment
// and health check of every service as processes, in the order that depends_on gives.
//
// It needs no container engine. What only an engine shows is not tested: whether the
// images exist, users and file modes in them, networks and limits.
package compose
