package stack

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"millwright/dev/devtest"
)

var awkwardSettings = []setting{
	{"PLAIN", "postgres://u:p@127.0.0.1:5432/db?sslmode=disable"},
	{"EMPTY", ""},
	{"SPACE", "a b  c"},
	{"QUOTES", `it's "so" and 'so'`},
	{"SHELL", "$HOME `id` $(id) \\ ! * ;& #"},
	{"LINES", "one\ntwo'\nexport X='3"},
}

func TestTheEnvironmentFileMeansTheSameToAShell(t *testing.T) {
	path := filepath.Join(t.TempDir(), "env")
	devtest.WriteFile(t, path, string(formatEnv(awkwardSettings)))
	for _, s := range awkwardSettings {
		out, err := exec.Command("sh", "-c", `. "$1"; sh -c 'printf %s "$'"$2"'"'`, "sh", path, s.name).Output()
		if err != nil || string(out) != s.value {
			t.Errorf("%s is %q to the shell, want %q (%v)", s.name, out, s.value, err)
		}
	}
	oneLine := awkwardSettings[:len(awkwardSettings)-1]
	devtest.WriteFile(t, path, string(formatEnv(oneLine)))
	if got := readEnv(path); !slices.Equal(got, oneLine) {
		t.Errorf("read: %q", got)
	}
	if got := readEnv(path + ".missing"); got != nil {
		t.Errorf("from a missing file: %q", got)
	}
}

// withoutSettings unsets what a developer may have set for the stack, for one test.
func withoutSettings(t *testing.T) {
	t.Helper()
	for _, name := range []string{"API_PORT", "TEMPORAL_ADDRESS", "DATABASE_URL", "MILLWRIGHT_PUBLIC_URL", "WEBHOOK_ALLOW_HTTP", "OPERATOR_ACTIONS", "TOKEN_SIGNING_KEYS", "TEMPORAL_NAMESPACE"} {
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
}

func TestTheEnvironmentOverridesSettings(t *testing.T) {
	withoutSettings(t)
	t.Setenv("WEBHOOK_ALLOW_NETWORKS", "10.0.0.0/8")
	cfg, err := loadConfig(t.TempDir())
	devtest.Must(t, err)
	settings := cfg.settings(&state{TokenSigningKeys: "dev1:k"}, "postgres://x")
	for name, want := range map[string]string{
		"DATABASE_URL":           "postgres://x",
		"TEMPORAL_ADDRESS":       "127.0.0.1:7233",
		"TEMPORAL_NAMESPACE":     "default",
		"MILLWRIGHT_PUBLIC_URL":  "http://127.0.0.1:8080",
		"WEBHOOK_ALLOW_NETWORKS": "10.0.0.0/8",
		"WEBHOOK_ALLOW_HTTP":     "true",
		"OPERATOR_ACTIONS":       "true",
		"TOKEN_SIGNING_KEYS":     "dev1:k",
	} {
		if got := valueOf(settings, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestAPortMustBeANumber(t *testing.T) {
	withoutSettings(t)
	for _, text := range []string{"80x", "70000", "0", "-1"} {
		t.Setenv("API_PORT", text)
		want := `API_PORT, the port of the API, must be a number from 1 to 65535, but is "` + text + `"`
		if _, err := loadConfig(t.TempDir()); err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

func TestTemporalElsewhereNeedsNoPorts(t *testing.T) {
	withoutSettings(t)
	t.Setenv("TEMPORAL_ADDRESS", "temporal.example:7233")
	cfg, err := loadConfig(t.TempDir())
	devtest.Must(t, err)
	for _, p := range cfg.ports() {
		if strings.HasPrefix(p.variable, "TEMPORAL") {
			t.Errorf("%s is still checked", p.variable)
		}
	}
}

// valueOf returns the value of a setting, "" if it is missing.
func valueOf(settings []setting, name string) string {
	for _, s := range settings {
		if s.name == name {
			return s.value
		}
	}
	return ""
}
