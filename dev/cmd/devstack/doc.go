// Devstack runs the servers that Millwright needs, Postgres and Temporal, on one
// machine: for development, for tests, or while one command runs.
//
//	devstack run        the stack for development, until Ctrl-C
//	devstack exec       a throwaway stack for one command
//	devstack temporal   a Temporal server alone
//	devstack postgres   a Postgres cluster alone
//
// The commands read flags and the environment and print errors; package stack
// does the work, and postgres and temporal run the servers. devstack runs itself
// as a child process for the Temporal server and for the guard of exec's command.
// It runs the product as a program and must not import its code.
package main
