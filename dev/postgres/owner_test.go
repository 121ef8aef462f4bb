package postgres

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millwright/dev/devtest"
)

func TestEnterableIsTheFirstThatPostgressUserCanEnter(t *testing.T) {
	dir, missing := devtest.OpenDirectory(t), filepath.Join(t.TempDir(), "missing")
	if got, err := Enterable(missing, dir, "/"); err != nil || got != dir {
		t.Errorf("chosen: %q, %v; want %s", got, err, dir)
	}
	if _, err := Enterable(missing); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("none can be entered: %v", err)
	}
	if os.Geteuid() != 0 {
		return
	}
	devtest.Must(t, os.Chmod(dir, 0o700))
	if got, err := Enterable(dir, "/"); err != nil || got != "/" {
		t.Errorf("chosen instead of one that is closed: %q, %v", got, err)
	}
}
