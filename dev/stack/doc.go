// Package stack combines a Postgres cluster, a Temporal server in a child process,
// and the programs that use them.
//
// Exec runs one command on a throwaway stack, on free ports and in a temporary
// directory, in memory if it has room and TMPDIR names no other place, and returns the
// command's exit status. Run runs the stack that a developer
// works with: fixed ports, data that is kept, the product's api and worker, and a
// demo organization. Both start the parts bottom up and stop them top down, and leave
// no process running, however they end.
//
// Only Linux signals children when their parent dies. On other systems, a stack
// killed with SIGKILL leaves its parts running; the next start stops the Postgres
// server and names the ports that the other parts hold.
//
// The package imports dev/postgres and dev/process. It runs the product's program and
// Temporal as processes and must not import their code.
package stack
