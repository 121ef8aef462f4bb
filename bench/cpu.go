package main

import (
	"net"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/procfs"
)

// usage is the CPU time that each part of the machine has used; nil without /proc.
type usage map[string]time.Duration

// others is the CPU time that is not part of the measurement, including kernel
// work that is charged to no process.
const others = "everything else"

// usageParts are the keys of a usage in the table's order.
var usageParts = []string{"api", "worker", "baselines", "postgres", "temporal", "bench", others}

// usage reads the CPU time of the product, of the servers it uses, and of
// everything else.
func (in *installation) usage() usage {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return nil
	}
	system, err := fs.Stat()
	if err != nil {
		return nil
	}
	used := usage{
		"bench":    timeOf(os.Getpid()),
		"postgres": timeOfTree(in.postgresPID),
		"temporal": timeOfTree(in.temporalPID),
	}
	for name, p := range map[string]*process{"api": in.api, "worker": in.worker, "baselines": in.baselines.server} {
		if p != nil {
			used[name] = timeOf(p.cmd.Process.Pid)
		}
	}
	c := system.CPUTotal // its two idle times do not count
	all := seconds(c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ + c.Steal)
	for _, t := range used {
		all -= t
	}
	used[others] = all
	return used
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// since returns the time used since an earlier reading.
func (u usage) since(earlier usage) usage {
	used := usage{}
	for part, t := range u {
		used[part] = max(0, t-earlier[part])
	}
	return used
}

// plus returns the sum of two usages.
func (u usage) plus(other usage) usage {
	sum := usage{}
	for _, used := range []usage{u, other} {
		for part, t := range used {
			sum[part] += t
		}
	}
	return sum
}

// report adds each part's seconds per thousand operations, and their sum without
// others, which it returns.
func (u usage) report(r *report, what string, n int) (ours float64) {
	if len(u) == 0 || n == 0 {
		return 0
	}
	for _, part := range usageParts {
		if u[part] == 0 && part != others {
			continue // it does not run or did nothing
		}
		cost := u[part].Seconds() * 1000 / float64(n)
		if part == others {
			r.add(what+": CPU of all these", ours, "s/1,000")
		} else {
			ours += cost
		}
		r.add(what+": CPU of "+part, cost, "s/1,000")
	}
	return ours
}

// stat returns the state of a process, empty if it does not run.
func stat(pid int) (s procfs.ProcStat) {
	if p, err := procfs.NewProc(pid); err == nil {
		s, _ = p.Stat()
	}
	return s
}

// timeOf returns the CPU time of a process and of its ended children.
func timeOf(pid int) time.Duration {
	const tick = time.Second / 100 // USER_HZ is 100 on every Linux
	s := stat(pid)
	return seconds(s.CPUTime()) + time.Duration(s.CUTime+s.CSTime)*tick
}

// timeOfTree returns the CPU time of a process and its children.
func timeOfTree(pid int) time.Duration {
	total := timeOf(pid)
	all, _ := procfs.AllProcs()
	for _, p := range all {
		if pid != 0 && stat(p.PID).PPID == pid {
			total += timeOf(p.PID)
		}
	}
	return total
}

// listenerOn returns the process that listens on the TCP address, 0 if it is not
// found.
func listenerOn(address string) int {
	const listening = 10
	_, port, _ := net.SplitHostPort(address)
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0
	}
	sockets, _ := fs.NetTCP() //nolint:staticcheck // netlink would need another library
	processes, _ := procfs.AllProcs()
	for _, socket := range sockets {
		if socket.St != listening || strconv.FormatUint(socket.LocalPort, 10) != port {
			continue
		}
		for _, p := range processes {
			if files, _ := p.FileDescriptorTargets(); slices.Contains(files, "socket:["+strconv.FormatUint(socket.Inode, 10)+"]") {
				return p.PID
			}
		}
	}
	return 0
}
