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

// describe returns what is measured, and where; nothing for what is unknown.
func describe(ctx context.Context) string {
	memory, postgres := "", ""
	var kilobytes float64
	if _, err := fmt.Sscan(fieldOf("/proc/meminfo", "MemTotal:"), &kilobytes); err == nil {
		memory = fmt.Sprintf("%.0f GiB", kilobytes/(1<<20))
	}
	conn := must(pgx.Connect(ctx, os.Getenv("DATABASE_URL")))
	defer func() { _ = conn.Close(ctx) }()
	check(conn.QueryRow(ctx, `SELECT split_part(current_setting('server_version'), ' ', 1)`).Scan(&postgres))
	temporal := must(client.DialContext(ctx, client.Options{HostPort: os.Getenv("TEMPORAL_ADDRESS"), Logger: quiet}))
	defer temporal.Close()
	system := must(temporal.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{}))
	loads := strings.Fields(firstLine("/proc/loadavg"))
	return fmt.Sprintf("%d cores, %s memory, %s %s %s; %s, Postgres %s, Temporal %s; commit %s; load before %s",
		runtime.NumCPU(), memory, fieldOf("/etc/os-release", "PRETTY_NAME="), firstLine("/proc/sys/kernel/osrelease"), runtime.GOARCH,
		runtime.Version(), postgres, system.GetServerVersion(), commit(ctx), strings.Join(loads[:min(3, len(loads))], " "))
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
