package consoletest

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

// axe-core is the released file.
func TestAxeIsPinned(t *testing.T) {
	sums, err := os.ReadFile("testdata/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	version, err := os.ReadFile("testdata/VERSION")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(axe))
	if string(sums) != hex.EncodeToString(sum[:])+"  axe.min.js\n" {
		t.Errorf("the checksum is %x, not that of SHA256SUMS", sum)
	}
	if !strings.Contains(axe, strings.Replace(strings.TrimSpace(string(version)), "axe-core ", "axe v", 1)) {
		t.Errorf("the script is not version %q", version)
	}
}
