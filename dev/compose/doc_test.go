// Package compose holds docker-compose.yml and the Dockerfile against what they
// run: the file is read as docker compose reads it, and every service's command,
// environment and health check is tried with the same programs as processes, in
// the order that depends_on makes.
//
// Neither needs a container engine. What only an engine shows is not tested:
// that the images can be had, users and file modes in them, networks and limits.
package compose
