package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// oldestMajor is the oldest Postgres that the stack supports.
const oldestMajor = 14

// Programs are the programs of one installed Postgres.
type Programs struct {
	// Dir is their directory.
	Dir string
	// Major is the version without its minor number.
	Major int
}

func (p Programs) path(name string) string { return filepath.Join(p.Dir, name) }

// packageDirectories are the directories where packages install the programs, as patterns.
var packageDirectories = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
}

// installed returns every usable Postgres on this machine in order of preference: the
// one on PATH, then those in the packages' directories, newest first.
func installed() []Programs {
	var onPath, packaged []Programs
	// PATH may have links to single programs.
	if initdb, err := exec.LookPath("initdb"); err == nil {
		if initdb, err = filepath.EvalSymlinks(initdb); err == nil {
			onPath = programsIn(filepath.Dir(initdb))
		}
	}
	for _, pattern := range packageDirectories {
		dirs, _ := filepath.Glob(pattern)
		for _, dir := range dirs {
			packaged = append(packaged, programsIn(dir)...)
		}
	}
	slices.SortStableFunc(packaged, func(a, b Programs) int { return cmp.Compare(b.Major, a.Major) })
	return append(onPath, packaged...)
}

var versionLine = regexp.MustCompile(`^postgres \(PostgreSQL\) (\d+)`)

// programsIn returns the programs in a directory, if they are usable.
func programsIn(dir string) []Programs {
	out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output()
	match := versionLine.FindSubmatch(out)
	if err != nil || match == nil {
		return nil
	}
	major, _ := strconv.Atoi(string(match[1]))
	if major < oldestMajor {
		return nil
	}
	return []Programs{{dir, major}}
}

// choosePrograms returns the programs that fit the existing data, or the preferred
// ones for a new cluster.
func choosePrograms(data string) (Programs, error) {
	installed := installed()
	if len(installed) == 0 {
		return Programs{}, fmt.Errorf("Postgres's programs are missing: install Postgres %d or newer, or set DATABASE_URL to a server", oldestMajor)
	}
	content, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return installed[0], nil
	}
	if err != nil {
		return Programs{}, fmt.Errorf("cannot read Postgres's data: %w", err)
	}
	version := strings.TrimSpace(string(content))
	for _, programs := range installed {
		if strconv.Itoa(programs.Major) == version {
			return programs, nil
		}
	}
	return Programs{}, fmt.Errorf("the data in %s was made by Postgres %s, which is not installed: "+
		"install it, or remove the directory to start over", data, version)
}
