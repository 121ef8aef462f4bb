package e2e

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestFaultDiskIsFull(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 48<<20)
	pg := newPostgres(t)
	chownToPostgres(t, disk, pg)
	pg.exec(fmt.Sprintf(`CREATE TABLESPACE small LOCATION '%s'`, disk))
	pg.exec(`CREATE DATABASE small TABLESPACE small`)
	database, err := url.Parse(pg.url)
	if err != nil {
		t.Fatal(err)
	}
	database.Path = "/small"
	h, r := newFaultHarness(t, database.String())
	h.startWorker()
	h.startAPI(nil)
	c := h.stormClients(1, 3, []string{h.settings["MILLWRIGHT_ADDR"]}, nil)[0]

	free := fill(t, disk)
	g := &outage{harness: h, c: c}
	long := strings.Repeat("It rattles. ", 800)
	refused := 0
	for refused < 20 {
		w := c.creation()
		w.body.(map[string]any)["description"] = w.marker + rand.Text() + long // random text, which does not compress
		g.writes = append(g.writes, w)
		asked := time.Now()
		response, err := c.try(w)
		switch {
		case err == nil && response.status == http.StatusCreated:
		default:
			refused++
			g.checkResponse("create", response, err, time.Since(asked))
		}
		if len(g.writes) > 5000 {
			t.Fatal("the disk does not become full")
		}
	}
	for _, w := range g.writes {
		there := h.count(`SELECT count(*) FROM work_orders WHERE description LIKE $1`, w.marker+"%")
		half := h.count(`SELECT (SELECT count(*) FROM history WHERE changes::text LIKE $1) + (SELECT count(*) FROM idempotency_keys WHERE key = $2)`,
			`%`+w.marker+`%`, w.marker)
		if want := map[bool]int{true: 1, false: 0}[w.acknowledged()]; there != want || half != 2*want {
			t.Errorf("%s, answered %d: %d work orders, %d rows beside", w.marker, w.status, there, half)
		}
	}
	if err := os.Remove(free); err != nil {
		t.Fatal(err)
	}
	h.awaitReadyAt(h.settings["MILLWRIGHT_ADDR"])
	g.retryWrites(r)
	addFinding(t, "disk full", "%d creations, %d of them answered 503, the longest after %s, and left nothing; with room again, all are there once",
		len(g.writes), refused, g.longest.Round(time.Millisecond))
}

// smallDisk is a file system of a few megabytes; the test is skipped where none
// can be made.
func smallDisk(t testing.TB, size int) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "millwright-disk-") //nolint:usetesting // Postgres runs as another user, to whom the test's own folder is closed
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0755", size)); err != nil {
		_ = os.Remove(dir)
		t.Skipf("this machine does not let the test make a small file system (%v); as root on Linux it would", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount the small disk: %v", err)
		}
		_ = os.Remove(dir)
	})
	return dir
}

// chownToPostgres gives the folder to the user Postgres runs as.
func chownToPostgres(t testing.TB, dir string, pg *postgres) {
	t.Helper()
	info, err := os.Stat(filepath.Join(pg.root, "data"))
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	if err := os.Chown(dir, int(owner.Uid), int(owner.Gid)); err != nil {
		t.Fatal(err)
	}
}

// fill fills the disk but for a little, and returns the file to remove for room.
func fill(t testing.TB, disk string) string {
	t.Helper()
	var room syscall.Statfs_t
	if err := syscall.Statfs(disk, &room); err != nil {
		t.Fatal(err)
	}
	const left = 512 << 10
	path := filepath.Join(disk, "ballast")
	if err := os.WriteFile(path, bytes.Repeat([]byte{1}, max(0, int(room.Bavail)*int(room.Bsize)-left)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
