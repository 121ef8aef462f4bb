package stack

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"millwright/dev/process"
)

// setting is one environment variable.
type setting struct{ name, value string }

// environ is the environment the stack was started with, without the values of the
// stack's own environment file. A developer may have loaded that file into the shell
// that calls `make run`, which is not a choice of database.
type environ map[string]string

func newEnviron(vars []string, ownFile []setting) environ {
	env := make(environ, len(vars))
	for _, v := range vars {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	for _, own := range ownFile {
		if value, ok := env[own.name]; ok && value == own.value {
			delete(env, own.name)
		}
	}
	return env
}

// list returns the environment in the form that exec.Cmd takes.
func (e environ) list() []string {
	list := make([]string, 0, len(e))
	for name, value := range e {
		list = append(list, name+"="+value)
	}
	return list
}

// resolve returns the settings; those set in the environment override the given
// values.
func (e environ) resolve(settings []setting) []setting {
	resolved := make([]setting, 0, len(settings))
	for _, s := range settings {
		if value, ok := e[s.name]; ok {
			s.value = value
		}
		resolved = append(resolved, s)
	}
	return resolved
}

// settings returns the settings of the product's programs, api and worker alike.
func (c *config) settings(st *state, databaseURL string) []setting {
	settings := []setting{
		{"DATABASE_URL", databaseURL},
		{"TEMPORAL_ADDRESS", c.temporal.address()},
		{"TEMPORAL_NAMESPACE", Namespace},
		{"MILLWRIGHT_ADDR", c.apiAddress},
		{"MILLWRIGHT_PUBLIC_URL", "http://" + c.apiAddress},
		{"WEBHOOK_ALLOW_NETWORKS", "127.0.0.0/8,::1/128"},
		{"WEBHOOK_ALLOW_HTTP", "true"},
		{"OPERATOR_ACTIONS", "true"},
		{"TOKEN_SIGNING_KEYS", st.TokenSigningKeys},
		{"SECRET_SEALING_KEYS", st.SecretSealingKeys},
	}
	if c.ownTemporal {
		settings = append(settings, setting{"TEMPORAL_UI_URL", c.uiURL()})
	}
	return settings
}

// logSettings returns the settings by which the product's programs write log lines that
// suit the output of the stack: they write to a pipe and cannot see a terminal at its end.
func logSettings(out io.Writer) []setting {
	if !process.IsTerminal(out) {
		return nil
	}
	return []setting{{"LOG_FORMAT", "text"}, {"CLICOLOR_FORCE", "1"}}
}

// uiURL is where Temporal's Web UI is.
func (c *config) uiURL() string { return "http://" + c.temporalUI.address() }

// valueOf returns the value of a setting, "" if it is missing.
func valueOf(settings []setting, name string) string {
	for _, s := range settings {
		if s.name == name {
			return s.value
		}
	}
	return ""
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

// plainWord matches words that a shell takes literally.
var plainWord = regexp.MustCompile(`^[\w./:@%+=-]+$`)

// quoteIfNeeded quotes text unless a shell takes it literally.
func quoteIfNeeded(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return quote(text)
}

// readEnv reads a file written with formatEnv. A missing file has no settings.
func readEnv(path string) []setting {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var settings []setting
	for _, entry := range strings.Split(string(content), "'\nexport ") {
		name, value, ok := strings.Cut(strings.TrimPrefix(entry, "export "), "='")
		if !ok {
			continue
		}
		value = strings.TrimSuffix(value, "'\n")
		settings = append(settings, setting{name, strings.ReplaceAll(value, `'\''`, "'")})
	}
	return settings
}
