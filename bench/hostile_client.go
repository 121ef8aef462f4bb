package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// This argument makes the program a hostile client.
const hostileClientCommand = "be-hostile"

// hostileJob is what a hostile client does: the load of a pattern as each of the neighbors.
type hostileJob struct {
	Pattern   string
	Neighbors []*tenant
}

// runHostileClient does the job until the context ends and returns the number of calls.
// It does so in another process: in this one the quiet organization's calls would wait
// for the hostile ones, which real clients do not.
func runHostileClient(ctx context.Context, job hostileJob) (calls int, err error) {
	described, noJob := json.Marshal(job)
	program, noProgram := os.Executable()
	if err := errors.Join(noJob, noProgram); err != nil {
		return 0, err
	}
	client := exec.CommandContext(context.WithoutCancel(ctx), program, hostileClientCommand)
	input, end := io.Pipe()
	context.AfterFunc(ctx, func() { _ = end.Close() })
	client.Stdin = io.MultiReader(bytes.NewReader(described), input)
	printed, err := client.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return 0, fmt.Errorf("the hostile client: %w: %s", err, failed.Stderr)
	}
	return calls, errors.Join(err, json.Unmarshal(printed, &calls))
}

// serveHostileClient does the job that the input describes until the input ends, and
// prints the number of calls.
func serveHostileClient(ctx context.Context, input io.Reader, output io.Writer) error {
	decoder := json.NewDecoder(input)
	var job hostileJob
	if err := decoder.Decode(&job); err != nil {
		return err
	}
	patterns := hostilePatterns()
	at := slices.IndexFunc(patterns, func(p hostilePattern) bool { return p.name == job.Pattern })
	if at < 0 {
		return fmt.Errorf("there is no pattern %q", job.Pattern)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, input)
		stop()
	}()
	var calls atomic.Int64
	var neighbors errgroup.Group
	for _, n := range job.Neighbors {
		neighbors.Go(func() error { return patterns[at].load(ctx, n, &calls) })
	}
	if err := neighbors.Wait(); err != nil {
		return err
	}
	return json.NewEncoder(output).Encode(calls.Load())
}
