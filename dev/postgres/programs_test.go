package postgres

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"millwright/dev/devtest"
)

// install creates a directory that looks like an installed Postgres.
func install(t *testing.T, dir string, major int) {
	t.Helper()
	devtest.Must(t, os.MkdirAll(dir, 0o755))
	server := fmt.Sprintf("#!/bin/sh\necho 'postgres (PostgreSQL) %d.3 (Some 1.2)'\n", major)
	for name, script := range map[string]string{"postgres": server, "initdb": "#!/bin/sh\n"} {
		devtest.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
	}
}

func TestInstalledPrefersPATHThenTheNewest(t *testing.T) {
	dir := t.TempDir()
	for _, major := range []int{9, 15, 17} {
		install(t, filepath.Join(dir, "lib", fmt.Sprint(major), "bin"), major)
	}
	// PATH has links to the programs.
	install(t, filepath.Join(dir, "linked"), 16)
	path := filepath.Join(dir, "path")
	devtest.Must(t, os.Mkdir(path, 0o755))
	devtest.Must(t, os.Symlink(filepath.Join(dir, "linked", "initdb"), filepath.Join(path, "initdb")))
	t.Setenv("PATH", path+":/usr/bin:/bin")
	before := packageDirectories
	packageDirectories = []string{filepath.Join(dir, "lib/*/bin")}
	t.Cleanup(func() { packageDirectories = before })

	var majors []int
	for _, programs := range installed() {
		majors = append(majors, programs.Major)
	}
	if want := []int{16, 17, 15}; !slices.Equal(majors, want) {
		t.Errorf("found %v, want %v", majors, want)
	}
	if first := installed()[0].Dir; first != filepath.Join(dir, "linked") {
		t.Errorf("the directory of the linked programs is %s", first)
	}
}
