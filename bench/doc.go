// Command bench measures the service on the Postgres of DATABASE_URL and the Temporal of
// TEMPORAL_ADDRESS and prints a table. Run it with `make bench`, which builds the product
// and starts a throwaway stack.
//
// Each part (-only lists them) makes its own installation: a database, a Temporal namespace,
// and api and worker as processes. The bench calls the API, receives the deliveries, and reads
// CPU time and memory from /proc. harness.go has what the parts share; sql/ makes rows.
//
// Nothing is asserted: figures are for comparison with the baselines, the same
// work without the product, measured in the same run. docs/performance.md
// explains how to read them.
//
// It must not call the service's code: of the product it imports packages for ids, signatures,
// workflow ids and the tokens of sessions.
package main
