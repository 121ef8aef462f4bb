package stack

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"millwright/dev/process"
)

// state is what the stack keeps between runs, in a file that only its owner may read.
type state struct {
	TokenSigningKeys  string `json:"token_signing_keys"`
	SecretSealingKeys string `json:"secret_sealing_keys"`
	// PostgresPort is kept so that a shell with an older environment file still finds
	// the database.
	PostgresPort int `json:"postgres_port"`
	// Demo holds the demo integration's credentials by database name. They are shown
	// only when they are created.
	Demo map[string]credentials `json:"demo"`
}

func statePath(dir string) string { return filepath.Join(dir, "state.json") }

// loadState reads the state, or creates a new one if there is no file.
func loadState(dir string) (st *state, isNew bool, err error) {
	content, err := os.ReadFile(statePath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return &state{
			TokenSigningKeys:  newKey(),
			SecretSealingKeys: newKey(),
			Demo:              make(map[string]credentials),
		}, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("cannot read the state of an earlier run: %w", err)
	}
	st = new(state)
	if err := json.Unmarshal(content, st); err != nil {
		return nil, false, fmt.Errorf("%s is damaged (remove the directory %s to start over): %w", statePath(dir), dir, err)
	}
	if st.Demo == nil {
		st.Demo = make(map[string]credentials)
	}
	return st, false, nil
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

// writeFile writes a file that only its owner may read, completely or not at all.
func writeFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err := f.Write(content); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// directoryLock is the right to use a directory for a stack. The kernel releases it when
// the process ends.
type directoryLock struct {
	file *os.File
	// afterCrash reports whether the previous holder did not release it.
	afterCrash bool
}

// lockDirectory locks the directory, or returns an error that names its holder.
func lockDirectory(dir string) (*directoryLock, error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot use the directory %s: %w", dir, err)
	}
	holder, _ := io.ReadAll(file)
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		file.Close()
		return nil, fmt.Errorf("a stack is already running in %s (process %s): stop it first, "+
			"or give a second one its own DEV_DIR and ports", dir, strings.TrimSpace(string(holder)))
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot lock the directory %s: %w", dir, err)
	}
	c := &directoryLock{file: file, afterCrash: len(holder) > 0}
	if err := c.write(strconv.Itoa(os.Getpid()) + "\n"); err != nil {
		file.Close()
		return nil, err
	}
	return c, nil
}

func (c *directoryLock) write(content string) error {
	if err := c.file.Truncate(0); err != nil {
		return err
	}
	_, err := c.file.WriteAt([]byte(content), 0)
	return err
}

func (c *directoryLock) release() {
	// At worst the next start mistakes this for a crash.
	_ = c.write("")
	c.file.Close()
}
