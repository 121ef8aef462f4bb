package stack

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// setting is one environment variable.
type setting struct{ name, value string }

// environ is the environment the stack was started with, less what came from
// its own environment file: a developer may have loaded that into the shell
// `make run` is called from, and did not mean to choose a database by it.
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

// list returns the environment as the system wants it.
func (e environ) list() []string {
	list := make([]string, 0, len(e))
	for name, value := range e {
		list = append(list, name+"="+value)
	}
	return list
}

// resolve returns the settings with the values that hold: what was set from
// outside wins.
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

// settings are those the product's programs get, api and worker alike.
func (c *config) settings(st *state, databaseURL string) []setting {
	return []setting{
		{"DATABASE_URL", databaseURL},
		{"TEMPORAL_ADDRESS", c.temporal.address()},
		{"TEMPORAL_NAMESPACE", Namespace},
		{"MILLWRIGHT_ADDR", c.apiAddress},
		{"MILLWRIGHT_PUBLIC_URL", "http://" + c.apiAddress},
		{"WEBHOOK_ALLOW_NETWORKS", "127.0.0.0/8,::1/128"},
		{"WEBHOOK_ALLOW_HTTP", "true"},
		{"TOKEN_SIGNING_KEYS", st.TokenSigningKeys},
		{"SECRET_SEALING_KEYS", st.SecretSealingKeys},
	}
}

// find returns the value of a setting.
func find(settings []setting, name string) string {
	for _, s := range settings {
		if s.name == name {
			return s.value
		}
	}
	return ""
}

// formatEnv writes settings as lines a shell can read.
func formatEnv(settings []setting) []byte {
	var b bytes.Buffer
	for _, s := range settings {
		fmt.Fprintf(&b, "export %s=%s\n", s.name, quote(s.value))
	}
	return b.Bytes()
}

// quote makes one word of a text for a shell.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// plainWord matches what a shell takes as it is.
var plainWord = regexp.MustCompile(`^[\w./:@%+=-]+$`)

// quoteIfNeeded quotes what a shell would not take as it is.
func quoteIfNeeded(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return quote(text)
}

// readEnv reads what formatEnv has written; of a file there is not, nothing.
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
