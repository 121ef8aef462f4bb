package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"millwright/service/servicetest"
)

// told is what a command of the program prints.
func told(t *testing.T, cmd *cobra.Command, args ...string) (string, error) {
	t.Helper()
	var printed bytes.Buffer
	cmd.SetOut(&printed)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true // as the program's root does
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return printed.String(), err
}

func TestResealCommand(t *testing.T) {
	newShell(t)
	const newer = "newer:YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXowMTIzNDU="
	for _, step := range []struct{ keys, says, fails string }{
		{newer, ": 0\n", "secrets do not open"},
		{newer + "," + servicetest.SealingKeys, ": 5\n", ""},
		{newer, ": 0\n", ""},
	} {
		t.Setenv("SECRET_SEALING_KEYS", step.keys)
		out, err := told(t, resealCommand())
		if (err == nil) != (step.fails == "") || err != nil && !strings.Contains(err.Error(), step.fails) || !strings.HasSuffix(out, step.says) {
			t.Errorf("it prints %q, %v; want %q, %q", out, err, step.says, step.fails)
		}
		if strings.Contains(out+errorText(err), newer) {
			t.Error("it prints a key")
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestRestoredCommand(t *testing.T) {
	s := newShell(t)
	epoch := func() int { return servicetest.Value[int](s.Fixture, `SELECT min(access_epoch) FROM integrations`) }
	before := epoch()
	if out, err := told(t, restoredCommand(), "temporal"); err != nil || strings.Contains(out, "tokens") || epoch() != before {
		t.Errorf("temporal: %q, %v", out, err)
	}
	if out, err := told(t, restoredCommand(), "postgres"); err != nil || !strings.Contains(out, "tokens") || epoch() == before {
		t.Errorf("postgres: %q, %v", out, err)
	}
	if _, err := told(t, restoredCommand(), "both"); err == nil {
		t.Error("there is no such thing, and it passes")
	}
}
