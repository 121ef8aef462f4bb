package stack

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var awkwardSettings = []setting{
	{"PLAIN", "postgres://u:p@127.0.0.1:5432/db?sslmode=disable"},
	{"EMPTY", ""},
	{"SPACE", "a b  c"},
	{"QUOTES", `it's "so" and 'so'`},
	{"SHELL", "$HOME `id` $(id) \\ ! * ;& #"},
	{"LINES", "one\ntwo'\nexport X='3"},
}

func TestEnvLinesMeanTheSameToAShell(t *testing.T) {
	path := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(path, formatEnv(awkwardSettings), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, s := range awkwardSettings {
		out, err := exec.Command("sh", "-c", `. "$1"; sh -c 'printf %s "$'"$2"'"'`, "sh", path, s.name).Output()
		if err != nil {
			t.Fatal(err)
		}
		if string(out) != s.value {
			t.Errorf("%s is %q to the shell, want %q", s.name, out, s.value)
		}
	}
}

func TestReadEnvReadsWhatFormatEnvWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "env")
	// Without the value that looks like the format itself.
	settings := awkwardSettings[:len(awkwardSettings)-1]
	if err := os.WriteFile(path, formatEnv(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := readEnv(path); !slices.Equal(got, settings) {
		t.Errorf("read: %q", got)
	}
	if got := readEnv(path + ".missing"); got != nil {
		t.Errorf("from a missing file: %q", got)
	}
}

func TestOwnEnvFileInTheShellChangesNothing(t *testing.T) {
	own := []setting{{"DATABASE_URL", "postgres://own"}, {"WEBHOOK_ALLOW_HTTP", "true"}}
	env := newEnviron([]string{"DATABASE_URL=postgres://own", "WEBHOOK_ALLOW_HTTP=false", "HOME=/root"}, own)
	if _, ok := env["DATABASE_URL"]; ok {
		t.Error("a value of the environment file counts as set by the developer")
	}
	if env["WEBHOOK_ALLOW_HTTP"] != "false" || env["HOME"] != "/root" {
		t.Errorf("values from elsewhere are lost: %v", env)
	}
}

func TestTheEnvironmentOverridesSettings(t *testing.T) {
	env := newEnviron([]string{"WEBHOOK_ALLOW_NETWORKS=10.0.0.0/8", "SMTP_URL=smtp://127.0.0.1:25"}, nil)
	cfg := mustLoadConfig(t, env)
	settings := env.resolve(cfg.settings(&state{TokenSigningKeys: "dev1:k"}, "postgres://x"))
	for name, want := range map[string]string{
		"DATABASE_URL":           "postgres://x",
		"TEMPORAL_ADDRESS":       "127.0.0.1:7233",
		"TEMPORAL_NAMESPACE":     "default",
		"MILLWRIGHT_ADDR":        "127.0.0.1:8080",
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
	if !slices.Contains(env.list(), "SMTP_URL=smtp://127.0.0.1:25") {
		t.Error("another variable is not passed on")
	}
}

func TestPathsAreQuotedOnlyWhereAShellNeedsIt(t *testing.T) {
	for text, want := range map[string]string{".dev/env": ".dev/env", "my dev/env": "'my dev/env'"} {
		if got := quoteIfNeeded(text); got != want {
			t.Errorf("%q becomes %s, want %s", text, got, want)
		}
	}
}

func mustLoadConfig(t *testing.T, env environ) *config {
	t.Helper()
	cfg, err := loadConfig(filepath.Join(t.TempDir(), "dev"), env)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestConfigErrors(t *testing.T) {
	for name, c := range map[string]struct {
		env  environ
		want string
	}{
		"not a number": {
			environ{"API_PORT": "80x"},
			`API_PORT, the port of the API, must be a number from 1 to 65535, but is "80x"`,
		},
		"not a port": {
			environ{"TEMPORAL_PORT": "70000"},
			`TEMPORAL_PORT, the port of Temporal, must be a number from 1 to 65535, but is "70000"`,
		},
		"one port for two purposes": {
			environ{"API_PORT": "9464"},
			"port 9464 is set for the API (API_PORT) and for the metrics of the API server (API_METRICS_PORT): choose another for one of them",
		},
		"an address without a port": {
			environ{"MILLWRIGHT_ADDR": "localhost"},
			`MILLWRIGHT_ADDR must have the form host:port, but is "localhost"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadConfig(t.TempDir(), c.env)
			if err == nil || err.Error() != c.want {
				t.Errorf("the error is %v, want %s", err, c.want)
			}
		})
	}
}

func TestAnAddressForTheAPIReplacesItsPort(t *testing.T) {
	cfg := mustLoadConfig(t, environ{"MILLWRIGHT_ADDR": "0.0.0.0:9000"})
	if cfg.apiAddress != "127.0.0.1:9000" || cfg.api.number != 9000 {
		t.Errorf("the address is %s, the port %d", cfg.apiAddress, cfg.api.number)
	}
}

func TestTemporalElsewhereNeedsNoPorts(t *testing.T) {
	cfg := mustLoadConfig(t, environ{"TEMPORAL_ADDRESS": "temporal.example:7233"})
	for _, p := range cfg.ports() {
		if strings.HasPrefix(p.variable, "TEMPORAL") {
			t.Errorf("%s is still checked", p.variable)
		}
	}
}
