// Package temporal runs a Temporal server for development inside the calling
// process: frontend, history, matching and the internal worker, on 127.0.0.1,
// with both of its stores in Postgres, and optionally the Temporal Web UI.
//
// What flows in is the URL of a Postgres server and the ports to listen on;
// what flows out is a server whose namespace answers. The databases are made
// when they are missing and their schema is brought up to date first, so the
// same databases may be given again after a stop or a crash.
//
// A process holds at most one server: Temporal keeps global state and ends the
// process on errors it cannot handle. The stack therefore runs it in a process
// of its own, and a test that wants to see Temporal die can kill that process.
package temporal
