package main

import (
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// usage is the CPU time in seconds that each process has used, by its name; 0 without /proc.
type usage map[string]float64

// usage reads the CPU time of the product and of the servers it uses.
func (in *installation) usage() usage {
	used := usage{"bench": cpuTime(os.Getpid()), "postgres": cpuTimeOfTree(in.postgresPID), "temporal": cpuTimeOfTree(in.temporalPID)}
	for name, p := range in.processes {
		used[name] = cpuTime(p.cmd.Process.Pid)
	}
	return used
}

// since returns the time used since an earlier reading.
func (u usage) since(earlier usage) usage {
	used := usage{}
	for process, seconds := range u {
		used[process] = max(0, seconds-earlier[process]) // it may have been restarted
	}
	return used
}

// measured is what one load did: its operations, how long they took, and their CPU time.
type measured struct {
	n    int
	took time.Duration
	used usage
}

// measure runs a load, which returns the number of its operations.
func (in *installation) measure(load func() int) measured {
	before, started := in.usage(), time.Now()
	n := load()
	took := time.Since(started)
	return measured{n, took, in.usage().since(before)}
}

// rate returns the operations per second.
func (m measured) rate() float64 { return float64(m.n) / m.took.Seconds() }

// awaitIdle waits until the processes use less than a tenth of a CPU, at most for the given time.
func (in *installation) awaitIdle(limit time.Duration, processes ...string) {
	end := time.Now().Add(limit)
	for busy := 1.0; busy >= 0.1 && time.Now().Before(end); {
		before := in.usage()
		sleep(time.Second)
		used := in.usage().since(before)
		busy = 0
		for _, process := range processes {
			busy += used[process]
		}
	}
}

// stat returns the state of a process, empty if it does not run.
func stat(pid int) (s procfs.ProcStat) {
	if p, err := procfs.NewProc(pid); err == nil {
		s, _ = p.Stat()
	}
	return s
}

// cpuTime returns the CPU time of a process and of its ended children.
func cpuTime(pid int) float64 {
	const ticks = 100 // USER_HZ is 100 on every Linux
	s := stat(pid)
	return s.CPUTime() + float64(s.CUTime+s.CSTime)/ticks
}

// cpuTimeOfTree returns the CPU time of a process and its children.
func cpuTimeOfTree(pid int) float64 {
	total := cpuTime(pid)
	all, _ := procfs.AllProcs()
	for _, p := range all {
		if pid != 0 && stat(p.PID).PPID == pid {
			total += cpuTime(p.PID)
		}
	}
	return total
}

// addMemory adds the resident memory of api and worker: now, and the most since they started.
func (in *installation) addMemory(when string, of func(procfs.ProcStatus) uint64) {
	for _, name := range []string{"api", "worker"} {
		p, err := procfs.NewProc(in.processes[name].cmd.Process.Pid)
		if err != nil {
			return // without /proc
		}
		in.add("memory, "+when+": "+name+", resident", float64(of(must(p.NewStatus())))/(1<<20), "MiB")
	}
}

// serverAt returns the process of the server at a local address, whose command line ends an
// argument with the port; 0 if it is not found.
func serverAt(address string) int {
	_, port, _ := net.SplitHostPort(address)
	all, _ := procfs.AllProcs()
	for _, p := range all {
		arguments, _ := p.CmdLine()
		if slices.ContainsFunc(arguments, func(text string) bool { return text == port || strings.HasSuffix(text, "port="+port) }) {
			return p.PID
		}
	}
	return 0
}
