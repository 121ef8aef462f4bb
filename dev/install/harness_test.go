package install

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/jackc/pgx/v5"

	"millwright/dev/devtest"
	"millwright/dev/postgres"
	"millwright/dev/process"
)

// harness is an installation whose services run as processes.
type harness struct {
	t *testing.T
	installation
	postgres *postgres.Cluster
	// ports are the ports used here, by service and by the port in its container.
	ports map[string]map[string]int
	// bin is a directory with the programs of the images.
	bin     string
	server  string // directory of Temporal's server module
	ui      string // directory of its UI's
	running map[string]*process.Process
}

// temporalPorts are the ports of the server's services, by the variable that changes
// each. In a container the defaults are free.
var temporalPorts = map[string]string{
	"FRONTEND_GRPC_PORT": "7233", "FRONTEND_HTTP_PORT": "7243", "FRONTEND_MEMBERSHIP_PORT": "6933",
	"MATCHING_GRPC_PORT": "7235", "MATCHING_MEMBERSHIP_PORT": "6935",
	"HISTORY_GRPC_PORT": "7234", "HISTORY_MEMBERSHIP_PORT": "6934",
	"WORKER_GRPC_PORT": "7239", "WORKER_MEMBERSHIP_PORT": "6939",
}

func newHarness(t *testing.T, i installation) *harness {
	t.Helper()
	h := &harness{
		t: t, installation: i, ports: map[string]map[string]int{}, bin: t.TempDir(),
		server: moduleDirectory(t, "go.temporal.io/server"), ui: moduleDirectory(t, "github.com/temporalio/ui-server/v2"),
		running: map[string]*process.Process{},
	}
	for service, ports := range map[string][]string{
		"postgres": {"5432"}, "temporal": append(slices.Sorted(maps.Values(temporalPorts)), "9090"),
		"temporal-ui": {"8080"}, "api": {"8080", "8081", "9464"}, "worker": {"8080", "9464"},
	} {
		free := devtest.FreePorts(t, len(ports))
		h.ports[service] = map[string]int{}
		for n, port := range ports {
			h.ports[service][port] = free[n]
		}
	}
	for name, path := range map[string]string{
		"temporal-server": tool(t, "go.temporal.io/server/cmd/server"), "temporal-sql-tool": tool(t, "go.temporal.io/server/cmd/tools/sql"),
		"ui-server": tool(t, "github.com/temporalio/ui-server/v2/cmd/server"), "millwright": millwright,
	} {
		if err := os.Symlink(path, filepath.Join(h.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	h.mapPaths()
	h.mapDatabaseURLs()
	return h
}

// mapPaths rewrites the mounted scripts with the paths used here, before anything
// runs.
func (h *harness) mapPaths() {
	scripts, err := filepath.Glob(filepath.Join(h.dir, "deploy", "*", "*.sh"))
	if err != nil || len(scripts) < 3 {
		h.t.Fatalf("the scripts are %v, %v", scripts, err)
	}
	for _, path := range scripts {
		content, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, []byte(h.path(string(content))), 0o700)
		}
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

// path replaces a container's paths with those used here.
func (h *harness) path(text string) string {
	return strings.NewReplacer(
		"/run/secrets/", filepath.Join(h.dir, "deploy/secrets")+"/",
		"/deploy/", filepath.Join(h.dir, "deploy/temporal")+"/",
		// Alpine's sh has pipefail; others do not.
		"exec /etc/temporal/entrypoint.sh", "exec bash "+filepath.Join(h.server, "docker/scripts/sh/entrypoint.sh"),
	).Replace(text)
}

// resolve replaces a container's addresses in a setting with those used here: host
// and port, a host alone, a port alone.
func (h *harness) resolve(service, value string) string {
	for host, ports := range h.ports {
		for port, free := range ports {
			value = strings.ReplaceAll(value, "@"+host+":"+port+"/", "@"+process.Address(free)+"/")
			if value == host+":"+port {
				return process.Address(free)
			}
		}
	}
	for port, free := range h.ports[service] {
		for _, host := range []string{"0.0.0.0", "127.0.0.1"} {
			if value == host+":"+port {
				return process.Address(free)
			}
			value = strings.ReplaceAll(value, "http://"+host+":"+port+"/", "http://"+process.Address(free)+"/")
		}
		if value == port {
			return strconv.Itoa(free)
		}
	}
	switch value {
	case "postgres":
		return process.Loopback
	case "5432":
		return strconv.Itoa(h.ports["postgres"][value])
	case "0.0.0.0":
		return process.Loopback
	}
	return h.path(value)
}

// environ returns the service's environment, mapped to this machine.
func (h *harness) environ(service string) []string {
	env := []string{"PATH=" + h.bin + ":" + os.Getenv("PATH"), "HOME=" + h.dir}
	for name, value := range h.project.Services[service].Environment {
		mapped := h.resolve(service, *value)
		if name == "POSTGRES_USER" && service == "temporal" {
			mapped = *value
		}
		if name == "DATABASE_URL_FILE" {
			mapped = h.mappedFile(mapped)
		}
		env = append(env, name+"="+mapped)
	}
	if service == "temporal" {
		for name, port := range temporalPorts {
			env = append(env, name+"="+strconv.Itoa(h.ports[service][port]))
		}
	}
	return env
}

// mapDatabaseURLs writes each file with a database URL again, with the addresses
// used here. It runs before any service starts: a service that read a file while
// it is being written could find it empty.
func (h *harness) mapDatabaseURLs() {
	for name, service := range h.project.Services {
		path := service.Environment["DATABASE_URL_FILE"]
		if path == nil {
			continue
		}
		original := h.path(*path)
		content, err := os.ReadFile(original)
		if err == nil {
			err = os.WriteFile(h.mappedFile(original), []byte(h.resolve(name, string(content))), 0o600)
		}
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

// mappedFile is where mapDatabaseURLs writes the file.
func (h *harness) mappedFile(path string) string { return filepath.Join(h.dir, filepath.Base(path)) }

// runJSON runs a command of the product with the API server's settings and decodes the JSON
// it prints.
func (h *harness) runJSON(into any, args ...string) {
	h.t.Helper()
	cmd := exec.CommandContext(h.t.Context(), millwright, args...)
	cmd.Env = h.environ("api")
	output, err := cmd.Output()
	if err != nil {
		exit, _ := errors.AsType[*exec.ExitError](err)
		h.t.Fatalf("millwright %s: %v\n%s", strings.Join(args, " "), err, exit.Stderr)
	}
	if err := json.Unmarshal(output, into); err != nil {
		h.t.Fatalf("millwright %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

func (h *harness) sql(database *url.URL, statements ...string) {
	h.t.Helper()
	conn, err := pgx.Connect(h.t.Context(), database.String())
	if err != nil {
		h.t.Fatal(err)
	}
	defer conn.Close(h.t.Context())
	for _, statement := range statements {
		if _, err := conn.Exec(h.t.Context(), statement); err != nil {
			word, _, _ := strings.Cut(statement, " PASSWORD ")
			h.t.Fatalf("%s: %v", word, err)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// startOrder returns the services in the order of depends_on.
func startOrder(project *types.Project) []string {
	var order []string
	var add func(name string)
	add = func(name string) {
		if slices.Contains(order, name) {
			return
		}
		for _, on := range slices.Sorted(maps.Keys(project.Services[name].DependsOn)) {
			add(on)
		}
		order = append(order, name)
	}
	for _, name := range slices.SortedFunc(maps.Keys(project.Services), cmp.Compare[string]) {
		add(name)
	}
	return order
}
