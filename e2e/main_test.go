package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"
)

// millwright is the path of the product's binary, built with failpoints.
var millwright string

// scratch is a directory for what tests build once.
var scratch string

// withRaceDetector is whether the tests, and so the product, have the race detector.
var withRaceDetector = func() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}()

// testsAtOnce returns the number of tests that run in parallel. -parallel overrides it. They wait
// for much, but with the race detector four of them are too many for Temporal on two processors.
func testsAtOnce() string {
	if withRaceDetector {
		return "3"
	}
	return "6"
}

func TestMain(m *testing.M) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set(testsAtOnce()) // a number
	}
	for _, name := range []string{"DATABASE_URL", "TEMPORAL_ADDRESS", "DEVSTACK"} {
		if os.Getenv(name) == "" {
			fmt.Fprintf(os.Stderr, "%s is not set: run the tests with `make test`, or under `bin/devstack exec --`\n", name)
			os.Exit(1)
		}
	}
	dir, err := os.MkdirTemp("", "millwright-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	scratch = dir
	status := 1
	if millwright, err = build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else if status = m.Run(); status == 0 {
		if err := writeReport(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

// build builds the product as the tests are built: with the race detector if they
// have it, which also shares their build cache.
func build(dir string) (string, error) {
	path := filepath.Join(dir, "millwright")
	args := []string{"build", "-tags", "failpoints", "-ldflags=-s -w", "-o", path}
	if withRaceDetector {
		args = append(args, "-race")
	}
	output, err := exec.Command("go", append(args, "millwright/cmd/millwright")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("cannot build the product: %w\n%s", err, output)
	}
	return path, nil
}
