// Package upkeep is what no caller asks for: retention, partitions, change positions below moved
// nodes, keys that are replaced, people who are replaced on work orders, workflows whose wake was
// lost, and the figures of metrics.
//
// Inputs are limits and the clock; outputs are what was done and whether more waits. It removes
// rows from every room's tables in small batches. It imports every room below it.
package upkeep
