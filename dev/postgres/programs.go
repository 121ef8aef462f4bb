package postgres

import (
	"cmp"
	"fmt"
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

// Installed returns every usable Postgres on this machine in order of preference: the
// one on PATH, the one pg_config names, then those in the usual packages' directories,
// newest first.
func Installed() []Programs {
	var found []Programs
	for _, dir := range searchDirectories() {
		programs, err := programsIn(dir)
		if err != nil || slices.Contains(found, programs) {
			continue
		}
		found = append(found, programs)
	}
	return found
}

// packageDirectories are the directories where packages install the programs, as patterns.
var packageDirectories = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
}

func searchDirectories() []string {
	var directories []string
	if initdb, err := exec.LookPath("initdb"); err == nil {
		directories = append(directories, filepath.Dir(initdb))
	}
	if bindir, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		directories = append(directories, strings.TrimSpace(string(bindir)))
	}
	for _, pattern := range packageDirectories {
		directories = append(directories, newestFirst(pattern)...)
	}
	return directories
}

var firstNumber = regexp.MustCompile(`\d+`)

// newestFirst returns the paths that match the pattern, ordered by the number that
// the asterisk matched.
func newestFirst(pattern string) []string {
	matches, err := filepath.Glob(pattern)
	if err != nil { // a malformed pattern
		panic(err)
	}
	version := func(path string) int {
		prefix, _, _ := strings.Cut(pattern, "*")
		n, _ := strconv.Atoi(firstNumber.FindString(strings.TrimPrefix(path, prefix)))
		return n
	}
	slices.SortStableFunc(matches, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
	return matches
}

var versionLine = regexp.MustCompile(`^postgres \(PostgreSQL\) (\d+)`)

// programsIn returns the programs in a directory. PATH may have links to single
// programs, so it follows them to the directory of the real ones.
func programsIn(dir string) (Programs, error) {
	initdb, err := filepath.EvalSymlinks(filepath.Join(dir, "initdb"))
	if err != nil {
		return Programs{}, err
	}
	dir = filepath.Dir(initdb)
	server := filepath.Join(dir, "postgres")
	if info, err := os.Stat(server); err != nil || info.Mode()&0o111 == 0 {
		return Programs{}, fmt.Errorf("%s has no program postgres", dir)
	}
	out, err := exec.Command(server, "--version").Output()
	if err != nil {
		return Programs{}, fmt.Errorf("cannot get the version of %s: %w", server, err)
	}
	match := versionLine.FindSubmatch(out)
	if match == nil {
		return Programs{}, fmt.Errorf("cannot get the version of %s from %q", server, out)
	}
	major, _ := strconv.Atoi(string(match[1]))
	if major < oldestMajor {
		return Programs{}, fmt.Errorf("%s is Postgres %d, older than %d", server, major, oldestMajor)
	}
	return Programs{Dir: dir, Major: major}, nil
}
