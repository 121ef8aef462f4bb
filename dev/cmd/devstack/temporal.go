package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"millwright/dev/process"
	"millwright/dev/stack"
	"millwright/dev/temporal"
)

func temporalCommand(args []string) (int, error) {
	flags := flag.NewFlagSet("devstack temporal", flag.ContinueOnError)
	url := flags.String("postgres", os.Getenv("DATABASE_URL"), "the URL of the Postgres server (default DATABASE_URL)")
	port := flags.Int("port", 0, "the port of the frontend service")
	uiPort := flags.Int("ui-port", 0, "the port of the Web UI; 0 for no Web UI")
	prefix := flags.String("db-prefix", "temporal", "the name of the first database; the second one's is this and _visibility")
	retention := flags.Duration("retention", 72*time.Hour, "how long a new namespace keeps closed workflows")
	if err := flags.Parse(args); err != nil {
		return 2, err
	}
	if *url == "" || *port == 0 {
		return 2, errors.New("temporal needs --port, and --postgres or DATABASE_URL")
	}
	for _, p := range []int{*port, *uiPort} {
		if p == 0 {
			continue
		}
		if err := process.CheckPort(p); err != nil {
			return 1, err
		}
	}
	signals := stopSignals()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var server *temporal.Server
	started := make(chan error, 1)
	go func() {
		var err error
		server, err = temporal.Start(ctx, temporal.Options{
			PostgresURL:    *url,
			DatabasePrefix: *prefix,
			Port:           *port,
			UIPort:         *uiPort,
			Retention:      *retention,
		})
		started <- err
	}()
	select {
	case err := <-started:
		if err != nil {
			return 1, err
		}
		fmt.Println(stack.ReadyLine)
		<-signals
		server.Stop()
		return 0, nil
	case <-signals:
		// Nothing has been stored yet.
		return 0, nil
	}
}
