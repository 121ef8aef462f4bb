package main

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// metricsSetting is the product's setting for its metrics address.
const metricsSetting = "METRICS_ADDR"

// memory is a process's memory in MiB: resident, and in use by Go's heap; 0 if
// unknown.
type memory struct{ resident, heap float64 }

const mebibyte = 1 << 20

// memoryOf reads a process's memory.
func memoryOf(ctx context.Context, p *process) (m memory) {
	if p == nil {
		return m
	}
	m.resident = residentOf(p.cmd.Process.Pid)
	if text, err := fetch(ctx, "http://"+p.metrics+"/metrics"); err == nil {
		m.heap = gauge(text, "go_memstats_heap_inuse_bytes") / mebibyte
	}
	return m
}

// residentOf returns a process's resident memory in MiB.
func residentOf(pid int) float64 {
	text := fieldOf(fmt.Sprintf("/proc/%d/status", pid), "VmRSS:")
	kilobytes, _ := strconv.ParseFloat(strings.TrimSuffix(text, " kB"), 64)
	return kilobytes / 1024
}

// gauge returns the value of a metric without labels in Prometheus's text format.
func gauge(text []byte, name string) float64 {
	for line := range bytes.Lines(text) {
		if value, found := bytes.CutPrefix(line, []byte(name+" ")); found {
			number, _ := strconv.ParseFloat(string(bytes.TrimSpace(value)), 64)
			return number
		}
	}
	return 0
}

// memories are the memory of api, worker and Temporal.
type memories struct{ api, worker, temporal memory }

func (in *installation) memories(ctx context.Context) memories {
	return memories{
		api: memoryOf(ctx, in.api), worker: memoryOf(ctx, in.worker),
		temporal: memory{resident: residentOf(in.temporalPID)},
	}
}

func (m memory) peak(other memory) memory {
	return memory{max(m.resident, other.resident), max(m.heap, other.heap)}
}

func (m memories) report(r *report, what string) {
	for _, part := range []struct {
		name string
		memory
	}{{"api", m.api}, {"worker", m.worker}, {"Temporal", m.temporal}} {
		if part.resident > 0 {
			r.add("memory, "+what+": "+part.name+", resident", part.resident, "MiB")
		}
		if part.heap > 0 {
			r.add("memory, "+what+": "+part.name+", Go heap", part.heap, "MiB")
		}
	}
}

// watchMemory reads the memory twice a second until done is called, which returns the
// peaks.
func (in *installation) watchMemory(ctx context.Context) (done func() memories) {
	const every = 500 * time.Millisecond
	ctx, stop := context.WithCancel(ctx)
	var peak memories
	var watching sync.WaitGroup
	watching.Go(func() {
		// The error is the context's; the readings until then count.
		_ = until(ctx, every, func() (bool, error) {
			now := in.memories(ctx)
			peak = memories{peak.api.peak(now.api), peak.worker.peak(now.worker), peak.temporal.peak(now.temporal)}
			return false, nil
		})
	})
	return func() memories {
		stop()
		watching.Wait()
		return peak
	}
}
