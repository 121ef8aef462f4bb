package postgres

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// openFolder returns a folder, with a space in its path, that every user can
// reach; testing's own are closed to others.
func openFolder(t *testing.T) string {
	t.Helper()
	base, err := os.MkdirTemp("", "millwright test ")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	if err := os.Chmod(base, 0o711); err != nil {
		t.Fatal(err)
	}
	return base
}

func TestPlaceIsWithinTheFolderWhenItCanBeReached(t *testing.T) {
	dir := openFolder(t)
	root, err := Place(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, "postgres"); root != want {
		t.Errorf("the place is %s, want %s", root, want)
	}
}

func TestPlaceIsElsewhereBelowRootsOwnFolder(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root's clusters belong to another user")
	}
	closed := filepath.Join(openFolder(t), "closed")
	dir := filepath.Join(closed, "dev")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := Place(dir)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(root, closed) {
		t.Errorf("the place is %s, which its user cannot reach", root)
	}
	if again, err := Place(dir); err != nil || again != root {
		t.Errorf("the second answer is %s, %v, the first was %s", again, err, root)
	}
	if other, err := Place(closed); err != nil || other == root {
		t.Errorf("another folder has the same place %s, %v", other, err)
	}
}

func TestMakeFolderRefusesWhatIsNotTheOwners(t *testing.T) {
	owner, err := Unprivileged()
	if err != nil {
		t.Fatal(err)
	}
	base := openFolder(t)
	link := filepath.Join(base, "link")
	if err := os.Symlink(base, link); err != nil {
		t.Fatal(err)
	}
	if err := owner.makeFolder(link); err == nil || !strings.Contains(err.Error(), "is in the way") {
		t.Errorf("a link was taken for a folder: %v", err)
	}
}
