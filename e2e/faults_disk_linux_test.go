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
	failed := 0
	for failed < 20 {
		w := c.creation()
		w.body.(map[string]any)["description"] = w.marker + rand.Text() + long // random text, which does not compress
		g.writes = append(g.writes, w)
		started := time.Now()
		response, err := c.try(w)
		switch {
		case err == nil && response.status == http.StatusCreated:
		default:
			failed++
			g.checkResponse("create", response, err, time.Since(started))
		}
		if len(g.writes) > 5000 {
			t.Fatal("the disk did not fill up")
		}
	}
	if err := os.Remove(free); err != nil {
		t.Fatal(err)
	}
	h.awaitReadyAt(h.settings["MILLWRIGHT_ADDR"]) // before, Postgres may refuse a connection
	for _, w := range g.writes {
		there := h.count(`SELECT count(*) FROM work_orders WHERE description LIKE $1`, w.marker+"%")
		half := h.count(`SELECT (SELECT count(*) FROM history WHERE changes::text LIKE $1) + (SELECT count(*) FROM stored_responses WHERE convert_from(body, 'UTF8') LIKE $1)`,
			`%`+w.marker+`%`)
		if want := map[bool]int{true: 1, false: 0}[w.acknowledged()]; there != want || half != 2*want {
			t.Errorf("%s, status %d: %d work orders, %d other rows", w.marker, w.status, there, half)
		}
	}
	g.retryWrites(r)
	addFinding(t, "disk full", "%d creations, of which %d got 503, the longest after %s, and left nothing; with free space again, each was done once",
		len(g.writes), failed, g.longest.Round(time.Millisecond))
}

// smallDisk mounts a file system of the given size. It skips the test if the machine
// does not allow that.
func smallDisk(t testing.TB, size int) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "millwright-disk-") //nolint:usetesting // Postgres runs as another user, who cannot enter the test's directory
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0755", size)); err != nil {
		_ = os.Remove(dir)
		t.Skipf("cannot mount a small file system (%v); root on Linux can", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount the small disk: %v", err)
		}
		_ = os.Remove(dir)
	})
	return dir
}

// chownToPostgres gives the directory to the user that Postgres runs as.
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

// fill fills the disk almost completely, and returns the file to remove to free it.
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
