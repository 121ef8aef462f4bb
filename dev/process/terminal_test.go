package process

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestIsTerminal(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if IsTerminal(file) || IsTerminal(io.Discard) {
		t.Error("a file or another writer counts as a terminal")
	}
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatalf("open a pseudo-terminal: %v", err)
	}
	defer terminal.Close()
	if !IsTerminal(terminal) {
		t.Error("a terminal does not count as one")
	}
}
