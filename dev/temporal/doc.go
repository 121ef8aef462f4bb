// Package temporal runs a Temporal server for development in the calling process:
// frontend, history, matching and the internal worker on 127.0.0.1, with both stores
// in Postgres, and optionally the Temporal Web UI.
//
// Start takes the URL of a Postgres server and the ports to listen on, and returns
// when the server's namespace answers. It creates missing databases and updates their
// schema first, so it can reuse them after a stop or a crash.
//
// A process can run only one server: Temporal keeps global state and exits on errors
// it cannot handle. So the stack runs it in a separate process, which tests can kill.
//
// The package imports dev/process, dev/postgres and nothing else of this repository.
package temporal
