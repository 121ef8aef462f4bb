package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"millwright/service/servicetest"
)

// snippets returns the code of the page's blocks in the language.
func snippets(page, language string) string {
	var code strings.Builder
	for _, rest := range strings.Split(page, "\n```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(rest, "\n```\n")
		code.WriteString(block + "\n")
	}
	return code.String()
}

// installed returns the path of a program. One that is missing skips the test, except in CI.
func installed(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skipf("%s is not installed", program)
	}
	return path
}

// runSnippet runs code of a page with an installed program and returns what it prints.
func runSnippet(t *testing.T, env settings, code, program string, args ...string) string {
	t.Helper()
	path := installed(t, program)
	file := filepath.Join(t.TempDir(), "snippet")
	if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(path, append(args, file)...)
	command.Env = append(env.environ(), "PATH="+os.Getenv("PATH"))
	var out, log bytes.Buffer
	command.Stdout, command.Stderr = &out, &log
	if err := command.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", program, err, out.String(), log.String())
	}
	return out.String()
}

// demoForms returns the forms of demo/campus.yaml, which the snippets answer.
func demoForms(t *testing.T) string {
	t.Helper()
	campus := readText(t, "../demo/campus.yaml")
	if !strings.Contains(campus, "kind: equipment, name: \"AHU 01, theatres\", external_id: NUH-A-AHU-01,") {
		t.Error("the demo has no equipment NUH-A-AHU-01")
	}
	_, forms, _ := strings.Cut(campus, "\nforms:\n")
	forms, _, found := strings.Cut(forms, "\n# ==")
	if !found {
		t.Fatal("the demo has no forms")
	}
	return forms + "\n"
}

// The snippets of docs/integrating.md run as they are printed, one after the other, and so do
// the calls of the README's tour.
func TestSnippetsOfIntegrating(t *testing.T) {
	t.Parallel()
	page := readText(t, "../docs/integrating.md")
	h := newHarness(t, nil)
	h.importFile(strings.NewReplacer("name: AHU 1}", "name: AHU 1, external_id: NUH-A-AHU-01}", // the demo's code
		"\nforms:\n", "\nforms:\n"+demoForms(t)).Replace(h.org.yaml()))
	h.startAPI(nil)
	i := h.integrator()
	env := settings{
		"MILLWRIGHT_URL": i.base, "CLIENT_ID": h.org.clientID, "CLIENT_SECRET": h.org.clientSecret, "TOKEN": i.token(),
		"DATABASE": filepath.Join(t.TempDir(), "erp.db"),
	}
	if _, err := exec.LookPath("jq"); err != nil && os.Getenv("CI") == "" {
		t.Skip("jq is not installed")
	}

	runSnippet(t, env, snippets(page, "sh"), "bash", "-euo", "pipefail")
	var id, priority, status string
	row := h.db.QueryRow(t.Context(), `SELECT id, priority, status FROM work_orders WHERE external_id = 'ERP-4711'`)
	if err := row.Scan(&id, &priority, &status); err != nil {
		t.Fatal(err)
	}
	if n := h.count(`SELECT count(*) FROM work_orders`); n != 1 || priority != "high" || status != "complete" {
		t.Errorf("%d work orders, priority %s, status %s; want 1, high, complete", n, priority, status)
	}

	t.Run("tour", func(t *testing.T) { // before sync takes away what it needs
		_, tour, _ := strings.Cut(readText(t, "../README.md"), "\n```\nTOKEN=")
		tour, _, found := strings.Cut("TOKEN="+tour, "\n```\n")
		if out := runSnippet(t, env, tour+"\n"+tour, "bash", "-euo", "pipefail"); !found || strings.Count(out, `"title":"Replace the supply filter"`) != 2 {
			t.Errorf("the tour prints %s", out)
		}
		if n := h.count(`SELECT count(*) FROM work_orders WHERE external_id IS NULL AND title = 'Replace the supply filter'`); n != 1 {
			t.Errorf("the tour makes %d work orders, want 1", n)
		}
	})
	t.Run("decimals", func(t *testing.T) {
		t.Parallel()
		env := settings{"MILLWRIGHT_URL": i.base, "TOKEN": i.token(), "WORK_ORDER": id}
		if out := strings.TrimSpace(runSnippet(t, env, snippets(page, "js"), "node")); out != "18.50" {
			t.Errorf("the answer is %q, want 18.50", out)
		}
	})
	t.Run("sync", func(t *testing.T) {
		t.Parallel()
		second := i.create("Read through its node only")
		sync := func() string { return runSnippet(t, env, snippets(page, "python"), "python3") }
		// A sync shows only what no transaction of another test in the same Postgres holds back.
		eventually(t, recoveryLimit, "the copy has both", func() bool {
			copied := sync()
			return strings.Contains(copied, id) && strings.Contains(copied, second)
		})
		// The tokens are void, and the work order whose node it may no longer read is gone.
		if err := pgx.BeginFunc(t.Context(), h.db, func(tx pgx.Tx) error {
			return servicetest.Write(t.Context(), tx, `DELETE FROM work_order_assignees WHERE work_order_id = $1`, second)
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := h.db.Exec(t.Context(), `DELETE FROM assignments WHERE identity_id = $1`, h.org.imported.IDs["erp"]); err != nil {
			t.Fatal(err)
		}
		eventually(t, recoveryLimit, "the copy has only its own", func() bool {
			copied := sync()
			return strings.Contains(copied, id) && !strings.Contains(copied, second)
		})
	})
}
