package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"

	"millwright/dev/postgres"
	"millwright/dev/process"
	"millwright/dev/stack"
)

func postgresCommand(args []string) (int, error) {
	flags := flag.NewFlagSet("devstack postgres", flag.ContinueOnError)
	data := flags.String("data", "", "the cluster's directory; created if it is missing")
	port := flags.Int("port", 0, "the port to listen on")
	log := flags.String("log", "", "the file for Postgres's messages (default standard error)")
	throwaway := flags.Bool("throwaway", false, "turn off fsync: faster, but the data does not survive a stop")
	standbyOf := flags.String("standby-of", "", "the URL of a cluster to copy and follow, as a streaming standby")
	if err := flags.Parse(args); err != nil {
		return 2, err
	}
	if *data == "" || *port == 0 {
		return 2, errors.New("postgres needs --data and --port")
	}
	root, err := filepath.Abs(*data)
	if err != nil {
		return 1, err
	}
	if err := process.CheckPort(*port); err != nil {
		return 1, err
	}
	signals := stopSignals()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-signals
		cancel()
	}()
	cluster, err := postgres.Start(ctx, postgres.Options{
		Root: root, Port: *port, Log: *log, Throwaway: *throwaway, StandbyOf: *standbyOf,
	})
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
		return 1, fmt.Errorf("Postgres ended unexpectedly (%s)", cluster.Ending())
	}
}
