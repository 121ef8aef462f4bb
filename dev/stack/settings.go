package stack

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// setting is one environment variable.
type setting struct{ name, value string }

// forgetOwnEnv removes the values of the stack's own environment file from the environment.
// A developer may have loaded that file into the shell that calls `make run`, which is not a
// choice of database.
func forgetOwnEnv(dir string) {
	for _, own := range readEnv(envFile(dir)) {
		if os.Getenv(own.name) == own.value {
			os.Unsetenv(own.name)
		}
	}
}

// settings returns the settings of the product's programs, api and worker alike. The
// environment overrides them.
func (c *config) settings(st *state, databaseURL string) []setting {
	url := "http://" + c.api.address()
	settings := []setting{
		{"DATABASE_URL", databaseURL},
		{"TEMPORAL_ADDRESS", c.temporal.address()},
		{"TEMPORAL_NAMESPACE", Namespace},
		{"MILLWRIGHT_PUBLIC_URL", url},
		{"WEBHOOK_ALLOW_NETWORKS", "127.0.0.0/8,::1/128"},
		{"WEBHOOK_ALLOW_HTTP", "true"},
		{"OPERATOR_ACTIONS", "true"},
		{"TOKEN_SIGNING_KEYS", st.TokenSigningKeys},
		{"SECRET_SEALING_KEYS", st.SecretSealingKeys},
		{"LOG_FORMAT", "text"},
	}
	if c.ownTemporal {
		settings = append(settings, setting{"TEMPORAL_UI_URL", c.uiURL()})
	}
	for i, s := range settings {
		if value, ok := os.LookupEnv(s.name); ok {
			settings[i].value = value
		}
	}
	return settings
}

// formatEnv formats settings as lines that a shell can read.
func formatEnv(settings []setting) []byte {
	var b bytes.Buffer
	for _, s := range settings {
		fmt.Fprintf(&b, "export %s=%s\n", s.name, quote(s.value))
	}
	return b.Bytes()
}

// quote quotes text as one word for a shell.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// readEnv reads a file written with formatEnv. A missing file has no settings.
func readEnv(path string) []setting {
	content, _ := os.ReadFile(path)
	var settings []setting
	for line := range strings.Lines(string(content)) {
		name, value, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(line, "export "), "'\n"), "='")
		if ok {
			settings = append(settings, setting{name, strings.ReplaceAll(value, `'\''`, "'")})
		}
	}
	return settings
}
