package main

import (
	"errors"
	"flag"
	"syscall"

	"millwright/dev/process"
	"millwright/dev/stack"
)

func execCommand(args []string) (int, error) {
	flags := flag.NewFlagSet("devstack exec", flag.ContinueOnError)
	noTemporal := flags.Bool("no-temporal", false, "start only Postgres")
	if err := flags.Parse(args); err != nil {
		return 2, err
	}
	if flags.NArg() == 0 {
		return 2, errors.New("exec needs a command: devstack exec [flags] -- CMD ARGS…")
	}
	return stack.Exec(stopSignals(), stack.ExecOptions{Command: flags.Args(), NoTemporal: *noTemporal})
}

// guardCommand is what exec runs its command under. It is not meant for people.
func guardCommand(args []string) (int, error) {
	if len(args) < 3 || args[0] != "--" {
		return 2, errors.New("guard is only used by exec")
	}
	return process.Guard(args[1], args[2:], stopSignals(syscall.SIGUSR2))
}
