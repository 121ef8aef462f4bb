package main

import (
	"strings"
	"testing"

	"millwright/service/servicetest"
)

func TestResealCommand(t *testing.T) {
	newHarness(t)
	const newer = "newer:YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXowMTIzNDU="
	for _, step := range []struct{ keys, says, fails string }{
		{newer, ": 0\n", "opens some secrets"},
		{newer + "," + servicetest.SealingKeys, ": 5\n", ""},
		{newer, ": 0\n", ""},
	} {
		t.Setenv("SECRET_SEALING_KEYS", step.keys)
		out, err := run(t, "reseal")
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
	h := newHarness(t)
	epoch := func() int { return servicetest.Value[int](h.Fixture, `SELECT min(access_epoch) FROM integrations`) }
	before := epoch()
	if out, err := run(t, "restored", "temporal"); err != nil || strings.Contains(out, "tokens") || epoch() != before {
		t.Errorf("temporal: %q, %v", out, err)
	}
	if out, err := run(t, "restored", "postgres"); err != nil || !strings.Contains(out, "tokens") || epoch() == before {
		t.Errorf("postgres: %q, %v", out, err)
	}
	if _, err := run(t, "restored", "both"); err == nil {
		t.Error("an unknown subcommand succeeds")
	}
}
