package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// usage is the processor time that each part of the machine has used; nil without
// /proc.
type usage map[string]time.Duration

// others is the processor time that is not part of the measurement, including kernel
// work that is charged to no process.
const others = "everything else"

// usageParts are the keys of a usage in the table's order.
var usageParts = []string{"api", "worker", "baselines", "postgres", "temporal", "bench", others}

// tickTime is the unit of /proc: USER_HZ is 100 on every Linux.
const tickTime = time.Second / 100

// usage reads the processor time of the product, of the servers it uses, and of
// everything else.
func (in *installation) usage() usage {
	system, err := os.ReadFile("/proc/stat")
	if err != nil {
		return nil
	}
	used := usage{
		"bench":    timeOf(os.Getpid()),
		"postgres": timeOfTree(in.postgresPID),
		"temporal": timeOfTree(in.temporalPID),
	}
	for name, p := range map[string]*process{"api": in.api, "worker": in.worker, "baselines": in.baselines} {
		if p != nil {
			used[name] = timeOf(p.cmd.Process.Pid)
		}
	}
	// Fields: user, nice, system, idle, iowait, irq, softirq, steal. The two idle
	// times do not count.
	line, _, _ := bytes.Cut(system, []byte("\n"))
	var all time.Duration
	for i, ticks := range strings.Fields(string(line))[1:9] {
		if i != 3 && i != 4 {
			all += ticksOf(ticks)
		}
	}
	for _, t := range used {
		all -= t
	}
	used[others] = all
	return used
}

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

// measured returns the seconds of all parts without others.
func (u usage) measured() (seconds float64) {
	for part, t := range u {
		if part != others {
			seconds += t.Seconds()
		}
	}
	return seconds
}

// report adds each part's seconds per thousand operations, and their sum without
// others.
func (u usage) report(r *report, what string, n int) {
	if len(u) == 0 || n == 0 {
		return
	}
	var ours float64
	for _, part := range usageParts {
		if u[part] == 0 && part != others {
			continue // it does not run or did nothing
		}
		seconds := u[part].Seconds() * 1000 / float64(n)
		if part == others {
			r.add(what+": CPU of all these", ours, "s/1,000")
		}
		r.add(what+": CPU of "+part, seconds, "s/1,000")
		ours += seconds
	}
}

// stat returns the fields of /proc/PID/stat after the program's name.
func stat(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

// Indexes into stat. proc(5) counts from 1 and counts the two fields before the
// name's end.
const (
	statParent       = 4 - 3
	statUser         = 14 - 3
	statSystem       = 15 - 3
	statReapedUser   = 16 - 3
	statReapedSystem = 17 - 3
)

func ticksOf(text string) time.Duration {
	n, _ := strconv.ParseInt(text, 10, 64)
	return time.Duration(n) * tickTime
}

// timeOf returns the processor time of a process and of its ended children.
func timeOf(pid int) time.Duration {
	fields := stat(pid)
	if len(fields) <= statReapedSystem {
		return 0
	}
	return ticksOf(fields[statUser]) + ticksOf(fields[statSystem]) + ticksOf(fields[statReapedUser]) + ticksOf(fields[statReapedSystem])
}

// timeOfTree returns the processor time of a process and its children.
func timeOfTree(pid int) time.Duration {
	total := timeOf(pid)
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range all {
		child, _ := strconv.Atoi(filepath.Base(folder))
		if fields := stat(child); len(fields) > statParent && pid != 0 && fields[statParent] == strconv.Itoa(pid) {
			total += timeOf(child)
		}
	}
	return total
}

// listenerOn returns the process that listens on the TCP address, 0 if it is not
// found.
func listenerOn(address string) int {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0
	}
	number, _ := strconv.Atoi(port)
	inode := listeningInode(number)
	if inode == "" {
		return 0
	}
	sockets, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, socket := range sockets {
		if target, err := os.Readlink(socket); err == nil && target == "socket:["+inode+"]" {
			pid, _ := strconv.Atoi(strings.Split(socket, "/")[2])
			return pid
		}
	}
	return 0
}

// listeningInode returns the inode of the socket that listens on the port.
func listeningInode(port int) string {
	const listening = "0A"
	table, _ := os.ReadFile("/proc/net/tcp")
	for line := range strings.Lines(string(table)) {
		// sl, local_address, rem_address, st, …; the inode is the tenth.
		fields := strings.Fields(line)
		if len(fields) > 9 && fields[3] == listening && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) {
			return fields[9]
		}
	}
	return ""
}
