// Devstack runs the servers that Millwright needs, Postgres and Temporal, on one
// machine: for development, for tests, or while one command runs. It runs itself as a
// child process for the Temporal server and for the guard of exec's command, and the
// product as a program, whose code it must not import.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"millwright/dev/postgres"
	"millwright/dev/process"
	"millwright/dev/stack"
	"millwright/dev/temporal"
)

const usage = `devstack runs Postgres and Temporal for development and tests.

  devstack run                          the stack for development, until Ctrl-C
  devstack exec [flags] -- CMD ARGS…    a throwaway stack for one command
  devstack temporal --port N [flags]    a Temporal server alone, until SIGTERM
  devstack postgres --data DIR --port N --log FILE [flags]
                                        a Postgres cluster alone, until SIGTERM

devstack COMMAND --help lists a command's flags.
`

// commands maps names to functions that take the arguments and return the exit
// status.
var commands = map[string]func(flags *flag.FlagSet, args []string) (int, error){
	"run":              runCommand,
	"exec":             execCommand,
	"temporal":         temporalCommand,
	"postgres":         postgresCommand,
	stack.GuardCommand: guardCommand,
}

func main() {
	// A closed terminal or pipe must not end the process before it has cleaned up.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	var command func(*flag.FlagSet, []string) (int, error)
	if len(os.Args) > 1 {
		command = commands[os.Args[1]]
	}
	if command == nil {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	status, err := command(flag.NewFlagSet("devstack "+os.Args[1], flag.ExitOnError), os.Args[2:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "devstack: %v\n", err)
		status = max(status, 1)
	}
	os.Exit(status)
}

var stopSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

// notify returns a channel for the signals that ask the process to stop.
func notify(others ...os.Signal) <-chan os.Signal {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, append(others, stopSignals...)...)
	return signals
}

func runCommand(flags *flag.FlagSet, args []string) (int, error) {
	_ = flags.Parse(args) // it has none, but --help
	return 0, stack.Run(notify(), stack.RunOptions{
		Millwright: "bin/millwright",
		Demo:       []string{"demo/service-company.yaml", "demo/campus.yaml"},
		Week:       "demo/week.yaml",
		Out:        os.Stdout,
	})
}

func execCommand(flags *flag.FlagSet, args []string) (int, error) {
	noTemporal := flags.Bool("no-temporal", false, "start only Postgres")
	_ = flags.Parse(args) // exits on errors
	if flags.NArg() == 0 {
		return 2, errors.New("exec needs a command: devstack exec [flags] -- CMD ARGS…")
	}
	return stack.Exec(notify(), *noTemporal, flags.Args())
}

// guardCommand is what exec runs its command under. It is not meant for people.
func guardCommand(_ *flag.FlagSet, args []string) (int, error) {
	if len(args) < 2 {
		return 2, errors.New("guard is only used by exec")
	}
	return process.Guard(args[0], args[1:], notify(process.GuardDeath))
}

func postgresCommand(flags *flag.FlagSet, args []string) (int, error) {
	var opts postgres.Options
	flags.StringVar(&opts.Root, "data", "", "the cluster's directory; created if it is missing")
	flags.IntVar(&opts.Port, "port", 0, "the port to listen on")
	flags.StringVar(&opts.Log, "log", "", "the file for Postgres's messages")
	flags.StringVar(&opts.StandbyOf, "standby-of", "", "the URL of a cluster to copy and follow, as a streaming standby")
	_ = flags.Parse(args) // exits on errors
	if opts.Root == "" || opts.Port == 0 || opts.Log == "" {
		return 2, errors.New("postgres needs --data, --port and --log")
	}
	var err error
	if opts.Root, err = filepath.Abs(opts.Root); err != nil {
		return 1, err
	}
	if err := process.CheckPort(opts.Port); err != nil {
		return 1, err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), stopSignals...)
	defer cancel()
	cluster, err := postgres.Start(ctx, opts)
	if err != nil {
		return 1, err
	}
	fmt.Println("DATABASE_URL=" + cluster.URL)
	fmt.Println(stack.ReadyLine)
	select {
	case <-ctx.Done():
		cluster.Stop()
		return 0, nil
	case <-cluster.Done():
		return 1, cluster.Failure()
	}
}

func temporalCommand(flags *flag.FlagSet, args []string) (int, error) {
	opts := temporal.Options{PostgresURL: os.Getenv("DATABASE_URL")}
	flags.IntVar(&opts.Port, "port", 0, "the port of the frontend service")
	flags.IntVar(&opts.UIPort, "ui-port", 0, "the port of the Web UI; 0 for no Web UI")
	flags.StringVar(&opts.DatabasePrefix, "db-prefix", "temporal", "the name of the first database; the second one's is this and _visibility")
	_ = flags.Parse(args) // exits on errors
	if opts.PostgresURL == "" || opts.Port == 0 {
		return 2, errors.New("temporal needs --port, and the URL of a Postgres server in DATABASE_URL")
	}
	ctx, cancel := signal.NotifyContext(context.Background(), stopSignals...)
	defer cancel()
	atOnce := context.AfterFunc(ctx, func() { os.Exit(1) }) //nolint:revive // a start can end anywhere: the next one completes it
	stop, err := temporal.Start(ctx, opts)
	atOnce()
	if err != nil {
		return 1, err
	}
	fmt.Println(stack.ReadyLine)
	<-ctx.Done()
	stop()
	return 0, nil
}
