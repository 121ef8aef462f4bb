// Command millwright is the whole service in one binary. `millwright api` serves the
// HTTP API and `millwright worker` runs workflows and delivers webhooks; both run in
// as many processes as needed. The other commands migrate the database, import
// organizations, check health and do what operators do; `millwright help` lists them.
//
// Inputs: the environment variables that `millwright config` prints, command-line
// flags and, for import, a file. Outputs: JSON log lines on standard error; tables
// on standard output, or JSON with --json; errors as one sentence on standard error.
// A command exits 0 only on success.
//
// The package is wiring: it reads settings, builds the parts and starts and stops
// them in order. Rules belong to package service, HTTP to api, Temporal to worker
// and workflows.
//
//   - settings.go: every setting, with its default and its meaning
//   - process.go: what api and worker have in common
//   - api.go, worker.go: the two servers
//   - operate.go, actor_flag.go, output.go: what the operators' commands have in common
//   - one file for each other command
package main
