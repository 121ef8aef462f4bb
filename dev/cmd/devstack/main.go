package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"millwright/dev/process"
)

const usage = `devstack runs Postgres and Temporal for development and tests.

  devstack run [flags]                  the stack for development, until Ctrl-C
  devstack exec [flags] -- CMD ARGS…    a throwaway stack for one command
  devstack temporal --port N [flags]    a Temporal server alone, until SIGTERM
  devstack postgres --data DIR --port N a Postgres cluster alone, until SIGTERM

devstack COMMAND --help lists a command's flags.
`

// commands maps names to functions that take the arguments and return the exit
// status.
var commands = map[string]func(args []string) (int, error){
	"run":                runCommand,
	"exec":               execCommand,
	"temporal":           temporalCommand,
	"postgres":           postgresCommand,
	process.GuardCommand: guardCommand,
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	command, ok := commands[os.Args[1]]
	if !ok {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	status, err := command(os.Args[2:])
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "devstack: %v\n", err)
	}
	os.Exit(status)
}

// stopSignals returns a channel for the signals that ask the process to stop. It also
// keeps a closed terminal or pipe from ending the process before it has cleaned up.
func stopSignals(others ...os.Signal) <-chan os.Signal {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, append(others, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)...)
	return signals
}
