// Package postgres runs private Postgres clusters for development and tests.
//
// A cluster is a folder, its root, with the data, the password of its one role
// and nothing that depends on where the folder lies. It listens on one
// loopback port. Start makes what is missing, puts right what a crash has left
// behind, and returns when the cluster answers.
//
// Postgres refuses to run as root, so root's clusters belong to an unprivileged
// user, and lie where that user can reach them.
package postgres
