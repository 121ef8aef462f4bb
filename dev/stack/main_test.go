package stack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/dev/devtest"
	"millwright/dev/process"
)

// The test binary acts as all programs of a stack: devstack itself, a Temporal that
// only prints that it is ready, and the product.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(act(os.Args[1], os.Args[2:]))
	}
	// The race detector makes every program wait for a second before it exits.
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	os.Exit(m.Run())
}

func act(role string, args []string) int {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGUSR2)
	var err error
	status := 0
	switch role {
	case "exec":
		status, err = Exec(signals, true, args)
	case "run":
		err = Run(signals, RunOptions{Millwright: os.Args[0], Demo: args, Week: "week.yaml", Out: os.Stdout})
	case GuardCommand:
		status, err = process.Guard(args[0], args[1:], signals)
	case "temporal":
		fmt.Println(ReadyLine)
		<-signals
	case "migrate":
		_, err = queryDatabase("create table if not exists runs (id serial)")
	case "import":
		var runs string
		if text, _ := os.ReadFile(args[0]); string(text) == demoWithConflicts {
			fmt.Fprintln(os.Stderr, "the list of conflicts")
			return 1
		}
		if runs, err = queryDatabase("insert into runs default values returning id::text"); runs == "1" {
			fmt.Println(`{"ids":{"margaret_ellison":"idn_1"},"integrations":{"erp":{"client_id":"demo","client_secret":"it's secret","webhooks":{"erp_hook":{"secret":"whsec_1"}}}}}`)
		} else {
			fmt.Println(`{"ids":{"margaret_ellison":"idn_1"},"integrations":{"erp":{"client_id":"demo"}}}`)
		}
	case "demo":
		fmt.Fprintln(os.Stderr, "work of", strings.Join(args, " and "))
	case "people":
		fmt.Println(`{"person_id":"idn_1","password":"for ` + strings.Join(args, " ") + `"}`)
	case "api":
		if os.Getenv("API_FAILS") != "" {
			fmt.Println("the last words")
			return 3
		}
		http.HandleFunc("/pid", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, os.Getpid()) })
		http.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
		http.HandleFunc("/fail", func(http.ResponseWriter, *http.Request) {
			fmt.Println("the last words")
			os.Exit(3)
		})
		go func() { fmt.Println(http.ListenAndServe(os.Getenv("MILLWRIGHT_ADDR"), nil)) }()
		<-signals
		fmt.Println("stopped in order")
	case "worker":
		fmt.Println("12:15:30.000 INF in " + os.Getenv("LOG_FORMAT"))
		fmt.Println("metrics on", os.Getenv("METRICS_ADDR"))
		<-signals
	case "listen":
		fmt.Println("receives with " + os.Getenv("WEBHOOK_SECRET"))
		<-signals
	case "query":
		var value string
		value, err = queryDatabase(args[0])
		fmt.Println(value)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(status, 1)
	}
	return status
}

// queryDatabase runs SQL on DATABASE_URL and returns the first value, if any.
func queryDatabase(sql string) (value string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, sql).Scan(&value); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", err
	}
	return value, nil
}

// devstack returns a command in which the test binary acts as devstack.
func devstack(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	devtest.Must(t, err)
	return exec.Command(self, args...)
}
