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

// oldestMajor is the oldest Postgres the stack runs on.
const oldestMajor = 14

// Programs are the programs of one installed Postgres.
type Programs struct {
	// Dir is the folder they are in.
	Dir string
	// Major is the version without its minor number.
	Major int
}

func (p Programs) path(name string) string { return filepath.Join(p.Dir, name) }

// Installed returns every usable Postgres found on this machine, the one to
// prefer first: what is on PATH, what pg_config names, then the folders of the
// usual packages from the newest version to the oldest.
func Installed() []Programs {
	var found []Programs
	for _, dir := range searchFolders() {
		programs, err := programsIn(dir)
		if err != nil || slices.Contains(found, programs) {
			continue
		}
		found = append(found, programs)
	}
	return found
}

// packageFolders are where packages put the programs, one pattern each.
var packageFolders = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
}

func searchFolders() []string {
	var folders []string
	if initdb, err := exec.LookPath("initdb"); err == nil {
		folders = append(folders, filepath.Dir(initdb))
	}
	if bindir, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		folders = append(folders, strings.TrimSpace(string(bindir)))
	}
	for _, pattern := range packageFolders {
		folders = append(folders, newestFirst(pattern)...)
	}
	return folders
}

var firstNumber = regexp.MustCompile(`\d+`)

// newestFirst returns what matches the pattern, ordered by the number that
// stands for the asterisk.
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

// programsIn looks at one folder. What is on PATH may be links to single
// programs, so the folder is that of the real ones.
func programsIn(dir string) (Programs, error) {
	initdb, err := filepath.EvalSymlinks(filepath.Join(dir, "initdb"))
	if err != nil {
		return Programs{}, err
	}
	dir = filepath.Dir(initdb)
	server := filepath.Join(dir, "postgres")
	if info, err := os.Stat(server); err != nil || info.Mode()&0o111 == 0 {
		return Programs{}, fmt.Errorf("there is no program postgres in %s", dir)
	}
	out, err := exec.Command(server, "--version").Output()
	if err != nil {
		return Programs{}, fmt.Errorf("%s does not tell its version: %w", server, err)
	}
	match := versionLine.FindSubmatch(out)
	if match == nil {
		return Programs{}, fmt.Errorf("%s does not tell its version: %q", server, out)
	}
	major, _ := strconv.Atoi(string(match[1]))
	if major < oldestMajor {
		return Programs{}, fmt.Errorf("%s is Postgres %d, older than %d", server, major, oldestMajor)
	}
	return Programs{Dir: dir, Major: major}, nil
}
