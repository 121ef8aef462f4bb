package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// machine describes what was measured, and where; "" if unknown.
type machine struct {
	Cores    int
	Memory   string
	OS       string
	Go       string
	Postgres string
	Temporal string
	Commit   string
	// Load is the machine's load average at the start.
	Load string
}

func (m machine) String() string {
	return fmt.Sprintf("%d cores, %s memory, %s; %s, Postgres %s, Temporal %s; commit %s; load before %s",
		m.Cores, m.Memory, m.OS, m.Go, m.Postgres, m.Temporal, m.Commit, m.Load)
}

func describe(ctx context.Context) machine {
	m := machine{
		Cores:  runtime.NumCPU(),
		OS:     strings.TrimSpace(fieldOf("/etc/os-release", "PRETTY_NAME=") + " " + firstLine("/proc/sys/kernel/osrelease") + " " + runtime.GOARCH),
		Go:     runtime.Version(),
		Commit: commit(ctx),
		Load:   strings.Join(strings.Fields(firstLine("/proc/loadavg"))[:min(3, len(strings.Fields(firstLine("/proc/loadavg"))))], " "),
	}
	var kilobytes float64
	if _, err := fmt.Sscan(fieldOf("/proc/meminfo", "MemTotal:"), &kilobytes); err == nil {
		m.Memory = fmt.Sprintf("%.0f GiB", kilobytes/(1<<20))
	}
	conn := must(pgx.Connect(ctx, os.Getenv("DATABASE_URL")))
	defer func() { _ = conn.Close(ctx) }()
	check(conn.QueryRow(ctx, `SELECT split_part(current_setting('server_version'), ' ', 1)`).Scan(&m.Postgres))
	temporal := must(client.DialContext(ctx, client.Options{HostPort: os.Getenv("TEMPORAL_ADDRESS"), Logger: quiet}))
	defer temporal.Close()
	m.Temporal = must(temporal.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})).GetServerVersion()
	return m
}

// commit returns the measured commit.
func commit(ctx context.Context) string {
	text, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

// fieldOf returns the text after the prefix in the first line of the file that starts
// with it.
func fieldOf(path, prefix string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if value, found := strings.CutPrefix(lines.Text(), prefix); found {
			return strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return ""
}

func firstLine(path string) string { return fieldOf(path, "") }
