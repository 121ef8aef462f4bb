// Package postgres runs private Postgres clusters for development and tests.
//
// A cluster is a directory, its root, with the data and the password of its only role.
// Nothing in it depends on the directory's path. Start takes the root and a port,
// creates what is missing, repairs what a crash left, and returns when the cluster
// answers on its loopback port. The programs are those installed on the machine.
//
// Postgres refuses to run as root, so root's clusters belong to an unprivileged user.
// Enterable chooses a directory that this user can enter.
//
// The package imports dev/process and nothing else of this repository.
package postgres
