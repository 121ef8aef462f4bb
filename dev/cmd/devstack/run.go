package main

import (
	"flag"
	"os"
	"strings"

	"millwright/dev/stack"
)

func runCommand(args []string) (int, error) {
	flags := flag.NewFlagSet("devstack run", flag.ContinueOnError)
	millwright := flags.String("millwright", "bin/millwright", "the product's program")
	demo := flags.String("demo", "demo/service-company.yaml,demo/campus.yaml", "the files to import, in order")
	week := flags.String("week", "demo/week.yaml", "the work to fill the demo with")
	if err := flags.Parse(args); err != nil {
		return 2, err
	}
	opts := stack.RunOptions{Millwright: *millwright, Out: os.Stdout}
	if *demo != "" {
		opts.Demo, opts.Week = strings.Split(*demo, ","), *week
	}
	if err := stack.Run(stopSignals(), opts); err != nil {
		return 1, err
	}
	return 0, nil
}
