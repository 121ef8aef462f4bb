package main

import (
	"bytes"
	"context"
	"strconv"
	"sync"
	"time"
)

// metricsSetting is the product's setting for its metrics address.
const metricsSetting = "METRICS_ADDR"

// memories are MiB by memoryRows, without those that are unknown.
type memories map[string]float64

// memoryRows are what is measured, in the table's order: the memory of a process, and what Go's
// heap uses of it.
var memoryRows = []string{"api, resident", "api, Go heap", "worker, resident", "worker, Go heap", "Temporal, resident"}

const mebibyte = 1 << 20

func (in *installation) memories(ctx context.Context) memories {
	m := memories{"Temporal, resident": float64(stat(in.temporalPID).ResidentMemory()) / mebibyte}
	for name, p := range map[string]*process{"api": in.api, "worker": in.worker} {
		if p == nil {
			continue
		}
		m[name+", resident"] = float64(stat(p.cmd.Process.Pid).ResidentMemory()) / mebibyte
		if text, err := fetch(ctx, "http://"+p.metrics+"/metrics"); err == nil {
			m[name+", Go heap"] = gauge(text, "go_memstats_heap_inuse_bytes") / mebibyte
		}
	}
	return m
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

func (m memories) report(r *report, what string) {
	for _, row := range memoryRows {
		if m[row] > 0 {
			r.add("memory, "+what+": "+row, m[row], "MiB")
		}
	}
}

// watchMemory reads the memory twice a second until done is called, which returns the
// peaks.
func (in *installation) watchMemory() (done func() memories) {
	const every = 500 * time.Millisecond
	ctx, stop := context.WithCancel(in.ctx)
	peak := memories{}
	var watching sync.WaitGroup
	watching.Go(func() {
		// The error is the context's; the readings until then count.
		_ = until(ctx, every, func() (bool, error) {
			for row, now := range in.memories(ctx) {
				peak[row] = max(peak[row], now)
			}
			return false, nil
		})
	})
	return func() memories {
		stop()
		watching.Wait()
		return peak
	}
}
