// Package process starts programs so that none of them outlives the stack, and
// stops them so that each can put its affairs in order.
//
// A started program gets a process group of its own: Ctrl-C in a terminal goes
// to a whole group, and the stack wants to decide itself who stops first. It
// also gets a signal from the kernel when the stack dies without stopping it
// (Linux). Beside that the package holds what goes with programs: their output
// line by line, and loopback ports.
package process
