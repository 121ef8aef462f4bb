package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/mail/mailtest"
)

func procs() map[int][]string {
	out := map[int][]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		s := string(b)
		end := strings.LastIndex(s, ")")
		name := s[strings.Index(s, "(")+1 : end]
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		out[pid] = append([]string{name}, strings.Fields(s[end+2:])...)
	}
	return out
}

func ms(f []string, children bool) float64 {
	n := func(i int) float64 { v, _ := strconv.ParseFloat(f[i], 64); return v }
	// after name: state(1) ppid(2) ... utime is field 14 overall => index 12 here (name at 0, state at 1 => field3)
	v := n(12) + n(13)
	if children {
		v += n(14) + n(15)
	}
	return v * 10
}

type cpu struct{ api, worker, temporal, postgres float64 }

func measure(api, worker *process) cpu {
	var c cpu
	all := procs()
	// devstack that is our ancestor
	pid := os.Getpid()
	dev := 0
	for pid > 1 {
		f := all[pid]
		if f == nil {
			break
		}
		if strings.HasPrefix(f[0], "devstack") {
			dev = pid
		}
		pid, _ = strconv.Atoi(f[2])
	}
	for p, f := range all {
		pp, _ := strconv.Atoi(f[2])
		switch {
		case p == dev:
			c.temporal = ms(f, false)
		case api != nil && p == api.cmd.Process.Pid:
			c.api = ms(f, false)
		case worker != nil && p == worker.cmd.Process.Pid:
			c.worker = ms(f, false)
		case f[0] == "postgres":
			a := p
			mine := false
			for a > 1 {
				if a == dev {
					mine = true
				}
				g := all[a]
				if g == nil {
					break
				}
				a, _ = strconv.Atoi(g[2])
			}
			_ = pp
			if mine {
				parent := all[pp]
				c.postgres += ms(f, parent == nil || parent[0] != "postgres")
			}
		}
	}
	return c
}

func (c cpu) minus(o cpu) cpu {
	return cpu{c.api - o.api, c.worker - o.worker, c.temporal - o.temporal, c.postgres - o.postgres}
}

func (c cpu) per(n int) string {
	f := float64(n)
	return fmt.Sprintf("api %.2f, worker %.2f, temporal %.2f, postgres %.2f ms each; all %.2f", c.api/f, c.worker/f, c.temporal/f, c.postgres/f, (c.api+c.worker+c.temporal+c.postgres)/f)
}

func rss(p *process) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	for l := range strings.SplitSeq(string(b), "\n") {
		if strings.HasPrefix(l, "VmRSS") {
			return l
		}
	}
	return ""
}

func TestZZMeasure(t *testing.T) {
	n := 1000
	if v, err := strconv.Atoi(os.Getenv("N")); err == nil {
		n = v
	}
	own := settings{}
	var s *stack
	if os.Getenv("MAILS") != "" {
		server := mailtest.NewServer(t, mailtest.Options{})
		s = newMailStack(t, server, own)
	} else {
		s = newStack(t, own)
		s.workforce()
	}
	api := s.startAPI(nil)
	i := s.integrator()
	i.token()
	if os.Getenv("WORKERFIRST") != "" {
		w := s.startWorker()
		t.Log("before", rss(w))
		before := measure(api, w)
		at := time.Now()
		ids := make([]string, n)
		next := make(chan int)
		var g sync.WaitGroup
		for range 4 {
			g.Go(func() {
				for k := range next {
					ids[k] = s.order(i, fmt.Sprint("Order ", k), []string{"worker"}, false)
				}
			})
		}
		for k := range n {
			next <- k
		}
		close(next)
		g.Wait()
		t.Logf("created %d in %s", n, time.Since(at))
		eventually(t, 5*time.Minute, "looked", func() bool { return s.count(`SELECT count(*) FROM looks_owed`) == 0 })
		t.Logf("looked after %s", time.Since(at))
		eventually(t, 5*time.Minute, "mailed", func() bool { return s.count(`SELECT count(*) FROM notices WHERE mail='waiting'`) == 0 })
		t.Logf("mailed after %s", time.Since(at))
		time.Sleep(5 * time.Second)
		t.Log("open: ", measure(api, w).minus(before).per(n))
		t.Log("after", rss(w))
		var signals int
		s.t = t
		for _, id := range ids[:20] {
			evs := s.temporal.GetWorkflowHistory(t.Context(), "work-order/"+id, "", false, 1)
			for evs.HasNext() {
				e, _ := evs.Next()
				if e.GetWorkflowExecutionSignaledEventAttributes() != nil {
					signals++
				}
			}
		}
		t.Log("signals in the first 20 workflows:", signals)
		signals = 0
		for _, id := range ids[n-20:] {
			evs := s.temporal.GetWorkflowHistory(t.Context(), "work-order/"+id, "", false, 1)
			for evs.HasNext() {
				e, _ := evs.Next()
				if e.GetWorkflowExecutionSignaledEventAttributes() != nil {
					signals++
				}
			}
		}
		t.Log("signals in the last 20 workflows:", signals)
		before = measure(api, w)
		at = time.Now()
		for _, id := range ids {
			i.complete(id)
		}
		t.Logf("completed %d in %s", n, time.Since(at))
		eventually(t, 5*time.Minute, "looked", func() bool { return s.count(`SELECT count(*) FROM looks_owed`) == 0 })
		eventually(t, 5*time.Minute, "mailed", func() bool { return s.count(`SELECT count(*) FROM notices WHERE mail='waiting'`) == 0 })
		t.Logf("mailed after %s", time.Since(at))
		time.Sleep(5 * time.Second)
		t.Log("completion: ", measure(api, w).minus(before).per(n))
		t.Log("after", rss(w))
		return
	}
	before := measure(api, nil)
	at := time.Now()
	for k := range n {
		s.order(i, fmt.Sprint("Order ", k), []string{"worker"}, false)
	}
	t.Logf("created %d in %s", n, time.Since(at))
	time.Sleep(3 * time.Second)
	t.Log("creates with pokes, no worker: ", measure(api, nil).minus(before).per(n))
}
