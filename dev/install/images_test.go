package install

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"millwright/dev/devtest"
)

// base is the image that the others are made from, and stays for the next run.
const base = "millwright-compose-base"

// label is on every image made here.
const label = "millwright.compose-test"

// makeBase makes it of Debian's packages.
const makeBase = `docker image inspect ` + base + ` >/dev/null 2>&1 || mmdebstrap --quiet --variant=minbase \
	--include=postgresql-15,busybox-static,ca-certificates bookworm - | docker import - ` + base

// prepareImages pulls and builds the images that the compose file names. Without a
// registry it makes them: the same users, entry points and programs in Debian, under the
// same names, so that the file stays as it is. It returns where they are from.
func (c *containers) prepareImages(t *testing.T) string {
	t.Helper()
	if _, err := c.try(t, `docker compose pull --quiet --ignore-buildable`); err == nil {
		checkout, err := filepath.Abs(repository)
		devtest.Must(t, err)
		c.sh(t, `cd "`+checkout+`" && MILLWRIGHT_VERSION=`+version+` docker compose --file docker-compose.yml build api`)
		return "pulled, and the product's built from its Dockerfile"
	}
	if _, err := c.try(t, `command -v mmdebstrap`); err != nil {
		t.Skip("no registry has the images, and mmdebstrap, which would make them, is not installed")
	}
	c.sh(t, makeBase)
	server, ui := moduleDirectory(t, "go.temporal.io/server"), moduleDirectory(t, "github.com/temporalio/ui-server/v2")
	product := c.productImage(t)
	// Of each service's image, its files by their names there.
	files := map[string]map[string]string{
		"postgres":        {"entrypoint.sh": "images/postgres/entrypoint.sh", "Dockerfile": "images/postgres/Dockerfile"},
		"temporal-schema": {"temporal-sql-tool": tool(t, "go.temporal.io/server/cmd/tools/sql"), "Dockerfile": "images/admin-tools/Dockerfile"},
		"temporal": {
			"temporal-server": tool(t, "go.temporal.io/server/cmd/server"), "entrypoint.sh": server + "/docker/scripts/sh/entrypoint.sh",
			"Dockerfile": "images/server/Dockerfile",
		},
		"temporal-ui": {
			"ui-server": tool(t, "github.com/temporalio/ui-server/v2/cmd/server"), "start-ui-server.sh": ui + "/docker/start-ui-server.sh",
			"docker.yaml": ui + "/config/docker.yaml", "Dockerfile": "images/ui/Dockerfile",
		},
		"api": {"millwright": millwright, "Dockerfile": product},
	}
	for _, service := range slices.Sorted(maps.Keys(files)) {
		image := c.project.Services[service].Image
		if _, err := c.try(t, `docker image inspect `+image); err == nil && service != "api" {
			continue // pulled earlier
		}
		directory := t.TempDir()
		for name, path := range files[service] {
			content, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(filepath.Join(directory, name), content, 0o755)
			}
			devtest.Must(t, err)
		}
		c.sh(t, `docker build --quiet --label `+label+` --tag `+image+` "`+directory+`"`)
	}
	postgres := c.sh(t, `docker run --rm --entrypoint postgres `+c.project.Services["postgres"].Image+` --version`)
	return strings.TrimSpace(postgres) + ", Temporal " + moduleVersion(server) + " and its UI " + moduleVersion(ui) + ", made without a registry"
}

// moduleVersion returns the version in the name of a module's directory.
func moduleVersion(directory string) string { return directory[strings.LastIndex(directory, "@v")+2:] }

// productImage writes a Dockerfile with the product's own last stage, but the binary that
// TestMain built.
func (c *containers) productImage(t *testing.T) string {
	t.Helper()
	_, last, found := strings.Cut(devtest.ReadFile(t, filepath.Join(repository, "Dockerfile")), "\nFROM scratch\n")
	if !found {
		t.Fatal("the Dockerfile has no stage from scratch")
	}
	path := filepath.Join(c.dir, "Dockerfile")
	first := "FROM " + base + " AS build\nLABEL " + label + "=\nCOPY millwright /out/millwright\nFROM scratch\n"
	devtest.WriteFile(t, path, first+last)
	return path
}

// removeImages removes what prepareImages made, so that no other project on this machine
// takes it for the image of that name.
func removeImages(t *testing.T) {
	t.Helper()
	if said, err := here(".").try(t, `docker image ls --filter dangling=false --filter label=`+label+` --format '{{.Repository}}:{{.Tag}}' |
		xargs --no-run-if-empty docker image rm --force; docker image prune --force --filter label=`+label); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}
