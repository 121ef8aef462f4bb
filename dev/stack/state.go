package stack

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"millwright/dev/postgres"
	"millwright/dev/process"
)

// state is what the stack keeps between runs, in a file that only its owner may read.
type state struct {
	TokenSigningKeys  string `json:"token_signing_keys"`
	SecretSealingKeys string `json:"secret_sealing_keys"`
	// PostgresPort is kept so that a shell with an older environment file still finds
	// the database.
	PostgresPort int `json:"postgres_port"`
	// PostgresDir is where the private cluster is, if not in the stack's directory.
	PostgresDir string `json:"postgres_dir,omitempty"`
	// Demo holds the demo integration's credentials by database. They are shown only when
	// they are created.
	Demo map[string]credentials `json:"demo"`
}

func statePath(dir string) string { return filepath.Join(dir, "state.json") }

// loadState reads the state, or creates a new one if there is no file.
func loadState(dir string) (*state, error) {
	st := &state{Demo: make(map[string]credentials)}
	content, err := os.ReadFile(statePath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		st.TokenSigningKeys, st.SecretSealingKeys = newKey(), newKey()
		return st, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the state of an earlier run: %w", err)
	}
	if err := json.Unmarshal(content, st); err != nil {
		return nil, fmt.Errorf("%s is damaged (remove the directory %s to start over): %w", statePath(dir), dir, err)
	}
	return st, nil
}

func (s *state) save(dir string) error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(statePath(dir), append(content, '\n'))
}

// newKey returns a random key in the form of the key settings.
func newKey() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return "dev1:" + base64.StdEncoding.EncodeToString(key)
}

// choosePostgresPort keeps the previous run's port if it is free.
func (s *state) choosePostgresPort() error {
	if s.PostgresPort != 0 && process.CheckPort(s.PostgresPort) == nil {
		return nil
	}
	ports, err := process.FreePorts(1)
	if err != nil {
		return err
	}
	s.PostgresPort = ports[0]
	return nil
}

// clusterRoot returns the private cluster's directory. Postgres's user cannot enter a
// directory below root's home; then the cluster is elsewhere.
func (s *state) clusterRoot(dir string) (string, error) {
	if s.PostgresDir != "" {
		return s.PostgresDir, nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	parent, err := postgres.Enterable(dir, "/var/lib", "/var/tmp")
	if err != nil || parent == dir {
		return filepath.Join(dir, "postgres"), err
	}
	s.PostgresDir = filepath.Join(parent, "millwright-dev-"+rand.Text())
	return s.PostgresDir, nil
}

// writeFile writes a file that only its owner may read, completely or not at all.
func writeFile(path string, content []byte) error {
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
