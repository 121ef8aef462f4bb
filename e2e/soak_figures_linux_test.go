//go:build soak

package e2e

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/api/workflowservice/v1"
)

// figure is something that a soak reads again and again.
type figure struct {
	name, unit string
	// kept is whether it grows with what is stored.
	kept bool
}

// sample are the values of the figures at one time. order has their names as they were read.
type sample struct {
	at     time.Duration
	order  []figure
	values map[string]float64
}

func (s *sample) add(name, unit string, kept bool, value float64) {
	s.order = append(s.order, figure{name, unit, kept})
	s.values[name] = value
}

const mebibyte = 1 << 20

// read reads all figures.
func (s *soak) read(at time.Duration) sample {
	s.t.Helper()
	now := sample{at: at, values: map[string]float64{}}
	for _, p := range s.parts {
		if s.metrics[p.name] != "" {
			s.readProcess(&now, p)
		}
	}
	s.readDatabase(&now)
	count, err := s.temporal.CountWorkflow(s.t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: `ExecutionStatus = 'Running'`})
	if err == nil { // Temporal may have been killed a moment ago
		open := s.count(`SELECT count(*) FROM work_orders WHERE status NOT IN ('complete', 'cancelled')`)
		now.add("open workflows beyond open work orders", "", false, float64(count.GetCount())-float64(open))
	}
	return now
}

// readProcess reads the figures of an API server or a worker that is never touched.
func (s *soak) readProcess(now *sample, p *part) {
	s.t.Helper()
	pid := p.p.cmd.Process.Pid
	metrics := scrape(s.t, s.metrics[p.name])
	add := func(name, unit string, kept bool, value float64) { now.add(p.name+": "+name, unit, kept, value) }
	add("memory", "MiB", false, residentOf(s.t, pid))
	add("Go heap in use", "MiB", false, value(metrics, "go_memstats_heap_inuse_bytes")/mebibyte)
	add("goroutines", "", false, value(metrics, "go_goroutines"))
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		s.t.Fatal(err)
	}
	add("open files", "", false, float64(len(files)))
	add("CPU", "s", true, value(metrics, "process_cpu_seconds_total"))
}

// readDatabase reads the figures of Postgres.
func (s *soak) readDatabase(now *sample) {
	s.t.Helper()
	eventually(s.t, recoveryLimit, "the pool has no connection that a fault has ended", func() bool { return s.db.Ping(s.t.Context()) == nil })
	rows, err := s.db.Query(s.t.Context(), `
		SELECT 'connections', '', false, count(*)::float8 FROM pg_stat_activity WHERE backend_type = 'client backend'
		UNION ALL SELECT 'age of the oldest snapshot', 'transactions', false, COALESCE(max(age(backend_xmin)), 0) FROM pg_stat_activity
		UNION ALL SELECT 'dead rows', '', false, sum(n_dead_tup) FROM pg_stat_user_tables
		UNION ALL SELECT 'WAL', 'MiB', true, (pg_current_wal_lsn() - '0/0')::float8 / 1048576
		UNION ALL SELECT 'the service''s database', 'MiB', true, pg_database_size(current_database())::float8 / 1048576
		UNION ALL SELECT 'Temporal''s databases', 'MiB', true, sum(pg_database_size(oid))::float8 / 1048576 FROM pg_database WHERE datname LIKE 'temporal%'
		UNION ALL (SELECT 'table ' || t.name, 'MiB', true, t.size / 1048576 FROM (
			SELECT COALESCE(p.inhparent::regclass::text, c.oid::regclass::text) AS name, sum(pg_total_relation_size(c.oid))::float8 AS size
			FROM pg_class c LEFT JOIN pg_inherits p ON p.inhrelid = c.oid
			WHERE c.relkind = 'r' AND c.relnamespace::regnamespace::text NOT IN ('pg_catalog', 'information_schema')
			GROUP BY 1) t ORDER BY t.size DESC LIMIT 10)`)
	if err != nil {
		s.t.Fatal(err)
	}
	var f figure
	var v float64
	if _, err := pgx.ForEachRow(rows, []any{&f.name, &f.unit, &f.kept, &v}, func() error {
		now.add("Postgres: "+f.name, f.unit, f.kept, v)
		return nil
	}); err != nil {
		s.t.Fatal(err)
	}
}

// residentOf returns a process's resident memory in MiB.
func residentOf(t testing.TB, pid int) float64 {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	var size, resident float64
	if _, err := fmt.Sscan(string(content), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * float64(os.Getpagesize()) / mebibyte
}

// trend is how a figure went.
type trend struct {
	begin, middle, end float64 // means of tenths of the time
	perHour            float64 // over the second half
	verdict            string
}

// trendOf returns how the values at the times went. A figure is steady if the line through
// the second half rises by less than the values scatter around it, or than a twentieth.
func trendOf(at []time.Duration, values []float64) trend {
	n := len(values)
	tenth := max(1, n/10)
	t := trend{begin: mean(values[:tenth]), middle: mean(values[n/2 : n/2+tenth]), end: mean(values[n-tenth:])}
	half := values[n/2:]
	hours := make([]float64, len(half))
	for i := range half {
		hours[i] = at[n/2+i].Hours()
	}
	middle, center := mean(half), mean(hours)
	var covariance, variance float64
	for i := range half {
		covariance += (hours[i] - center) * (half[i] - middle)
		variance += (hours[i] - center) * (hours[i] - center)
	}
	if variance > 0 {
		t.perHour = covariance / variance
	}
	var scatter float64
	for i := range half {
		off := half[i] - middle - t.perHour*(hours[i]-center)
		scatter += off * off
	}
	scatter = math.Sqrt(scatter / float64(len(half)))
	rise := t.perHour * (hours[len(hours)-1] - hours[0])
	switch most := max(2*scatter, math.Abs(middle)/20); {
	case rise > most:
		t.verdict = "grows"
	case rise < -most:
		t.verdict = "falls"
	default:
		t.verdict = "steady"
	}
	return t
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// report returns the figures for people to read.
func (s *soak) report(reader *soakReader) string {
	s.t.Helper()
	last := s.samples[len(s.samples)-1]
	var b strings.Builder
	fmt.Fprintf(&b, "# A run of the soak\n\nWritten by `make soak`; [soak.md](soak.md) explains the load, the faults and the rows.\n\n")
	fmt.Fprintf(&b, "- %s\n- %s of load: %d acknowledged writes (%.0f a second), %d reads, %d of them failed during a fault\n", s.machine(), last.at.Round(time.Second),
		s.written, float64(s.written)/last.at.Seconds(), reader.calls+reader.failed, reader.failed)
	for n, r := range s.receivers {
		got, again := len(r.got()), r.duplicates()
		fmt.Fprintf(&b, "- receiver %d: %d events, %d of them more than once\n", n+1, got-again, again)
	}
	fmt.Fprintf(&b, "- %d faults: %s\n- acknowledged and lost, doubled, not delivered, out of order: none, or this file is not written\n\n", len(s.faults), countsOf(s.faults))
	fmt.Fprintf(&b, "| figure | begin | middle | end | per hour, second half | |\n|---|---|---|---|---|---|\n")
	for _, f := range last.order {
		var at []time.Duration
		var values []float64
		for _, one := range s.samples {
			if v, ok := one.values[f.name]; ok {
				at, values = append(at, one.at), append(values, v)
			}
		}
		t := trendOf(at, values)
		if f.kept {
			t.verdict = fmt.Sprintf("%.3g a thousand writes", 1000*(values[len(values)-1]-values[0])/float64(s.written)/(at[len(at)-1]-at[0]).Seconds()*last.at.Seconds())
		}
		name := f.name
		if f.unit != "" {
			name += ", " + f.unit
		}
		fmt.Fprintf(&b, "| %s | %.4g | %.4g | %.4g | %+.3g | %s |\n", name, t.begin, t.middle, t.end, t.perHour, t.verdict)
	}
	return b.String()
}

// countsOf lists each string once with its number of occurrences.
func countsOf(all []string) string {
	counts := map[string]int{}
	var order []string
	for _, text := range all {
		if counts[text]++; counts[text] == 1 {
			order = append(order, text)
		}
	}
	for i, text := range order {
		order[i] = fmt.Sprintf("%s (%d)", text, counts[text])
	}
	return strings.Join(order, ", ")
}
