// Package stack puts the pieces together: a Postgres cluster, a Temporal server
// in a child process, and what runs on top of them.
//
// Exec brings up a stack for the time of one command, on free ports, in a
// temporary folder. Run brings up the stack a developer works with: fixed
// ports, data that stays, the product's api and worker, and a demo
// organization. Both start from the bottom and stop from the top, and leave no
// process behind however they end. (Where the kernel does not tell children of
// a parent's death, that is, elsewhere than on Linux, a stack killed with
// SIGKILL leaves its parts running; the next start stops the Postgres server
// and names the ports the others hold.)
package stack
