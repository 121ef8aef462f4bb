// Package process starts programs so that none of them outlives the stack, and stops
// them so that each can shut down cleanly.
//
// Start takes an exec.Cmd and returns a Process. The program gets its own process
// group, because Ctrl-C in a terminal reaches a whole group and the stack decides
// itself what stops first. On Linux the kernel also signals the program if the stack
// dies without stopping it, and Guard kills what a command started and left running.
//
// It imports nothing of the product or the rest of dev/.
package process
