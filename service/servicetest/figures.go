package servicetest

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"
)

// Percentiles returns percentiles in milliseconds. It sorts the times.
func Percentiles(took []time.Duration) (p50, p99 float64) {
	slices.Sort(took)
	at := func(percent int) float64 { return float64(took[len(took)*percent/100].Microseconds()) / 1000 }
	return at(50), at(99)
}

// Usage returns what the database's backends and this process have used so far.
func Usage(f *Fixture) (u Resources) {
	var rusage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &rusage); err != nil {
		panic(err)
	}
	u.Process = time.Duration(rusage.Utime.Nano() + rusage.Stime.Nano())
	for _, pid := range Value[[]int](f, `SELECT array_agg(pid) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'`) {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
		var nanoseconds int64
		_, _ = fmt.Sscan(string(text), &nanoseconds)
		u.Backends += time.Duration(nanoseconds)
	}
	u.WAL = Value[int64](f, `SELECT (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint`)
	return u
}

// Resources are CPU time and bytes of WAL.
type Resources struct {
	Backends, Process time.Duration
	WAL               int64
}

// BenchReads reports how long the reads take, and the CPU of the database's processes.
func BenchReads(b *testing.B, f *Fixture, read func() error) {
	b.Helper()
	for range 10 { // makes plans
		Must(b, read())
	}
	before := Usage(f)
	var took []time.Duration
	b.ResetTimer()
	for range b.N {
		started := time.Now()
		Must(b, read())
		took = append(took, time.Since(started))
	}
	_, p99 := Percentiles(took)
	b.ReportMetric(p99, "p99-ms")
	b.ReportMetric(float64((Usage(f).Backends-before.Backends).Microseconds())/float64(b.N), "backend-µs/op")
}
