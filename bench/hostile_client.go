package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
)

// This argument makes the program a hostile client.
const hostileClientCommand = "be-hostile"

// hostileJob is what a hostile client does: one of hostileLoads as the neighbor.
type hostileJob struct {
	Load     string
	Neighbor *neighbor
}

// runHostileClient does the job until the context ends and returns the number of calls.
// It does so in another process: in this one the quiet organization's calls would wait
// for the hostile ones, which real clients do not.
func runHostileClient(ctx context.Context, job hostileJob) (calls int, err error) {
	described, err := json.Marshal(job)
	if err != nil {
		return 0, err
	}
	program, err := os.Executable()
	if err != nil {
		return 0, err
	}
	client := exec.CommandContext(context.WithoutCancel(ctx), program, hostileClientCommand)
	var stdout, stderr strings.Builder
	client.Stdout, client.Stderr = &stdout, &stderr
	stdin, err := client.StdinPipe()
	if err != nil {
		return 0, err
	}
	if err := client.Start(); err != nil {
		return 0, err
	}
	_, err = stdin.Write(append(described, '\n'))
	if err == nil {
		<-ctx.Done()
	}
	stdin.Close()
	if ended := client.Wait(); ended != nil || err != nil {
		return 0, fmt.Errorf("the hostile client: %w: %s", errors.Join(err, ended), stderr.String())
	}
	if _, err := fmt.Sscan(stdout.String(), &calls); err != nil {
		return 0, fmt.Errorf("the hostile client's calls: %w", err)
	}
	return calls, nil
}

// serveHostileClient does the job that the input describes until the input ends, and
// prints the number of calls.
func serveHostileClient(ctx context.Context, input io.Reader, output io.Writer) error {
	decoder := json.NewDecoder(input)
	var job hostileJob
	if err := decoder.Decode(&job); err != nil {
		return err
	}
	load, ok := hostileLoads[job.Load]
	if !ok {
		return fmt.Errorf("there is no load %q", job.Load)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, input)
		stop()
	}()
	var calls atomic.Int64
	if err := load(job.Neighbor, ctx, &calls); err != nil {
		return err
	}
	_, err := fmt.Fprintln(output, calls.Load())
	return err
}
