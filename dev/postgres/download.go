package postgres

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	embedded "github.com/fergusstrange/embedded-postgres"

	"millwright/dev/process"
)

// downloadedVersion is the version that is downloaded if no Postgres is installed.
const downloadedVersion = embedded.V16

// download returns the programs of a downloaded Postgres. The first call downloads
// them.
func download(owner Owner) (Programs, error) {
	dir, err := downloadDirectory(owner)
	if err != nil {
		return Programs{}, err
	}
	if programs, err := programsIn(filepath.Join(dir, "bin")); err == nil {
		return programs, nil
	}
	fmt.Fprintln(os.Stderr, "devstack: Postgres is not installed; downloading it (only the first time) …")
	scratch, err := os.MkdirTemp(dir, "scratch-")
	if err != nil {
		return Programs{}, err
	}
	defer os.RemoveAll(scratch)
	ports, err := process.FreePorts(1)
	if err != nil {
		return Programs{}, err
	}
	output := process.NewLines(func(string) {})
	server := embedded.NewDatabase(embedded.DefaultConfig().
		Version(downloadedVersion).
		BinariesPath(dir).
		CachePath(scratch).
		RuntimePath(filepath.Join(scratch, "runtime")).
		Port(uint32(ports[0])).
		Logger(output))
	// The library cannot download without starting a server. As root the start fails
	// after the download, so its error alone does not count.
	startErr := server.Start()
	if startErr == nil {
		startErr = server.Stop()
	}
	programs, err := programsIn(filepath.Join(dir, "bin"))
	if err != nil {
		return Programs{}, fmt.Errorf("Postgres is not installed and cannot be downloaded: "+
			"install Postgres %d or newer, or set DATABASE_URL to a server (%w)", oldestMajor, cmp.Or(startErr, err))
	}
	return programs, nil
}

// downloadDirectory returns the directory for downloaded programs: the user's cache, or a
// directory everyone can read if Postgres's user cannot enter the cache.
func downloadDirectory(owner Owner) (string, error) {
	name := "millwright-postgres-" + string(downloadedVersion)
	if cache, err := os.UserCacheDir(); err == nil {
		dir := filepath.Join(cache, name)
		if os.MkdirAll(dir, 0o755) == nil && owner.CanEnter(dir) {
			return dir, nil
		}
	}
	for _, shared := range sharedDirectories {
		dir := filepath.Join(shared, name)
		// Everyone may write to the shared directory, so someone else could have put
		// programs there.
		if os.MkdirAll(dir, 0o755) == nil && belongsTo(dir, os.Geteuid()) && owner.CanEnter(dir) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("found no directory for Postgres's programs that the user %s can enter", owner.Name)
}
