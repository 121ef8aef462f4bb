package service

import (
	"fmt"
	"strings"
	"testing"
)

// A short file whose aliases stand for billions of values is rejected before they are
// expanded; a file with few aliases is read.
func TestImportFileOfAliases(t *testing.T) {
	const head = "organization: {key: acme, name: Acme}\ninventory:\n  - &a0 {key: n0, kind: location, name: N}\n"
	bomb := strings.Builder{}
	bomb.WriteString(head)
	for i := 1; i <= 12; i++ {
		fmt.Fprintf(&bomb, "  - &a%d {key: n%d, kind: location, name: N, children: [%s*a%d]}\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), i-1)
	}
	_, err := readImportFile([]byte(bomb.String()))
	if err == nil || !strings.Contains(err.Error(), "aliases") {
		t.Errorf("%d bytes that stand for 10^12 nodes: %.200v", bomb.Len(), err)
	}

	_, err = readImportFile([]byte(strings.Repeat("#", maxImportFile+1)))
	if err == nil || !strings.Contains(err.Error(), "larger than 8 MiB") {
		t.Errorf("a file that is too large: %.200v", err)
	}

	file, err := readImportFile([]byte(head + "people:\n  - &p {key: ann, name: &n Ann, email: a@example.com}\nteams: [{key: t, name: *n, members: [ann]}]\n"))
	if err != nil || *file.Teams[0].Name != "Ann" {
		t.Errorf("a file with an alias: %v", err)
	}
}
