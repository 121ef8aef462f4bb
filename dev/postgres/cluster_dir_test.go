package postgres

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// openDirectory returns a directory that every user can enter, with a space in its path.
// The directories of t.TempDir are closed to other users.
func openDirectory(t *testing.T) string {
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

func TestClusterDirIsInTheDirectoryIfItsUserCanEnterIt(t *testing.T) {
	dir := openDirectory(t)
	root, err := ClusterDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, "postgres"); root != want {
		t.Errorf("the cluster is in %s, want %s", root, want)
	}
}

func TestClusterDirIsElsewhereBelowRootsHome(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this user's clusters are its own")
	}
	closed := filepath.Join(openDirectory(t), "closed")
	dir := filepath.Join(closed, "dev")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := ClusterDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(root, closed) {
		t.Errorf("the cluster is in %s, which its user cannot enter", root)
	}
	if again, err := ClusterDir(dir); err != nil || again != root {
		t.Errorf("the second call returned %s, %v; the first %s", again, err, root)
	}
	if other, err := ClusterDir(closed); err != nil || other == root {
		t.Errorf("another directory got the same directory %s, %v", other, err)
	}
}

func TestMakeDirectoryRejectsALink(t *testing.T) {
	owner, err := Unprivileged()
	if err != nil {
		t.Fatal(err)
	}
	base := openDirectory(t)
	link := filepath.Join(base, "link")
	if err := os.Symlink(base, link); err != nil {
		t.Fatal(err)
	}
	if err := owner.makeDirectory(link); err == nil || !strings.Contains(err.Error(), "is in the way") {
		t.Errorf("a link was accepted as a directory: %v", err)
	}
}
