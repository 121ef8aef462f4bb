package compose

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/jackc/pgx/v5"

	"millwright/dev/postgres"
	"millwright/dev/process"
)

// Every service's command runs with its environment as a process, one after
// another as depends_on says, until its own health check is content. What
// differs from containers is where things are: addresses and paths are mapped.
func TestTheServicesRun(t *testing.T) {
	i := install(t, "MILLWRIGHT_VERSION="+version)
	r := newRun(t, i)
	for _, name := range inOrder(i.project) {
		r.start(name)
	}

	// What the service's own commands do in its container.
	var imported struct {
		OrganizationID string                 `json:"organization_id"`
		IDs            map[string]string      `json:"ids"`
		Integrations   map[string]credentials `json:"integrations"`
	}
	r.ask(&imported, "import", filepath.Join(r.dir, "deploy/example-organization.yaml"))
	var created credentials
	r.ask(&created, "integrations", "create", "--organization", imported.OrganizationID, "--name", "BMS", "--scope", "inventory:read", "--json")
	base := "http://" + r.resolve("api", "0.0.0.0:8080")
	for name, c := range map[string]credentials{"the imported": imported.Integrations["erp"], "the created": created} {
		form := url.Values{"grant_type": {"client_credentials"}, "client_id": {c.ClientID}, "client_secret": {c.ClientSecret}}
		answer, err := http.PostForm(base+"/v1/oauth/token", form)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s integration's call for a token is answered %d", name, answer.StatusCode)
		}
	}
	for _, path := range []string{"/readyz?temporal=1", "/livez", "/docs"} {
		if status := get(base + path); status != http.StatusOK {
			t.Errorf("%s answers %d", path, status)
		}
	}
	for _, service := range []string{"api", "worker"} {
		if status := get("http://" + r.resolve(service, "0.0.0.0:9464") + "/metrics"); status != http.StatusOK {
			t.Errorf("the metrics of the %s answer %d", service, status)
		}
	}
	r.checkDatabases()

	for _, name := range []string{"worker", "api"} {
		grace := time.Duration(*i.project.Services[name].StopGracePeriod)
		if status := r.stop(name, grace); status != 0 {
			t.Errorf("%s ends with status %d when it is stopped:\n%s", name, status, r.output[name].String())
		}
	}
}

// credentials are an integration's.
type credentials struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
}

// run is an installation whose services are processes.
type run struct {
	t *testing.T
	installation
	postgres *postgres.Cluster
	// ports are the real ones, by service and the port in its container.
	ports map[string]map[string]int
	// bin is a folder with the programs of the images.
	bin     string
	server  string // folder of Temporal's server module
	ui      string // folder of its UI's
	running map[string]*exec.Cmd
	ended   map[string]chan struct{}
	output  map[string]*buffer
}

// buffer is what a process printed so far.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// temporalPorts are those of the server's services, which an environment of its
// own moves: in a container they are free.
var temporalPorts = map[string]string{
	"FRONTEND_GRPC_PORT": "7233", "FRONTEND_HTTP_PORT": "7243", "FRONTEND_MEMBERSHIP_PORT": "6933",
	"MATCHING_GRPC_PORT": "7235", "MATCHING_MEMBERSHIP_PORT": "6935",
	"HISTORY_GRPC_PORT": "7234", "HISTORY_MEMBERSHIP_PORT": "6934",
	"WORKER_GRPC_PORT": "7239", "WORKER_MEMBERSHIP_PORT": "6939",
}

func newRun(t *testing.T, i installation) *run {
	t.Helper()
	r := &run{
		t: t, installation: i, ports: map[string]map[string]int{}, bin: t.TempDir(),
		server: moduleFolder(t, "go.temporal.io/server"), ui: moduleFolder(t, "github.com/temporalio/ui-server/v2"),
		running: map[string]*exec.Cmd{}, ended: map[string]chan struct{}{}, output: map[string]*buffer{},
	}
	for service, ports := range map[string][]string{
		"postgres": {"5432"}, "temporal": append(slices.Sorted(maps.Values(temporalPorts)), "9090"),
		"temporal-ui": {"8080"}, "api": {"8080", "9464"}, "worker": {"8080", "9464"},
	} {
		free, err := process.FreePorts(len(ports))
		if err != nil {
			t.Fatal(err)
		}
		r.ports[service] = map[string]int{}
		for n, port := range ports {
			r.ports[service][port] = free[n]
		}
	}
	for name, path := range map[string]string{
		"temporal-server": tool(t, "go.temporal.io/server/cmd/server"), "temporal-sql-tool": tool(t, "go.temporal.io/server/cmd/tools/sql"),
		"ui-server": tool(t, "github.com/temporalio/ui-server/v2/cmd/server"), "millwright": millwright,
	} {
		if err := os.Symlink(path, filepath.Join(r.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	r.mapPaths()
	r.mapDatabaseURLs()
	return r
}

// mapPaths writes the mounted scripts anew with the paths they have here.
func (r *run) mapPaths() {
	scripts, err := filepath.Glob(filepath.Join(r.dir, "deploy", "*", "*.sh"))
	if err != nil || len(scripts) < 3 {
		r.t.Fatalf("the scripts are %v, %v", scripts, err)
	}
	for _, path := range scripts {
		content, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, []byte(r.path(string(content))), 0o700)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

// path maps the paths in a container to those here.
func (r *run) path(text string) string {
	return strings.NewReplacer(
		"/run/secrets/", filepath.Join(r.dir, "deploy/secrets")+"/",
		"/deploy/", filepath.Join(r.dir, "deploy/temporal")+"/",
		// Alpine's sh knows pipefail, others do not.
		"exec /etc/temporal/entrypoint.sh", "exec bash "+filepath.Join(r.server, "docker/scripts/sh/entrypoint.sh"),
	).Replace(text)
}

// resolve maps what a service's settings say of addresses to what is here: host
// and port, a host alone, a port alone.
func (r *run) resolve(service, value string) string {
	for host, ports := range r.ports {
		for port, free := range ports {
			value = strings.ReplaceAll(value, "@"+host+":"+port+"/", "@"+process.Address(free)+"/")
			if value == host+":"+port {
				return process.Address(free)
			}
		}
	}
	for port, free := range r.ports[service] {
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
		return strconv.Itoa(r.ports["postgres"][value])
	case "0.0.0.0":
		return process.Loopback
	}
	return r.path(value)
}

// environ is the service's environment, mapped.
func (r *run) environ(service string) []string {
	env := []string{"PATH=" + r.bin + ":" + os.Getenv("PATH"), "HOME=" + r.dir}
	for name, value := range r.project.Services[service].Environment {
		mapped := r.resolve(service, *value)
		if name == "POSTGRES_USER" && service == "temporal" {
			mapped = *value
		}
		if name == "DATABASE_URL_FILE" {
			mapped = r.mappedFile(mapped)
		}
		env = append(env, name+"="+mapped)
	}
	if service == "temporal" {
		for name, port := range temporalPorts {
			env = append(env, name+"="+strconv.Itoa(r.ports[service][port]))
		}
	}
	return env
}

// mapDatabaseURLs writes each file with a database URL again, with the addresses
// used here. It runs before any service starts: a service that read a file while
// it is being written could find it empty.
func (r *run) mapDatabaseURLs() {
	for name, service := range r.project.Services {
		path := service.Environment["DATABASE_URL_FILE"]
		if path == nil {
			continue
		}
		original := r.path(*path)
		content, err := os.ReadFile(original)
		if err == nil {
			err = os.WriteFile(r.mappedFile(original), []byte(r.resolve(name, string(content))), 0o600)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

// mappedFile is where mapDatabaseURLs writes the file.
func (r *run) mappedFile(path string) string { return filepath.Join(r.dir, filepath.Base(path)) }

// start starts the service; a job is waited for, a server until it is healthy.
func (r *run) start(name string) {
	r.t.Helper()
	if name == "postgres" {
		r.startPostgres()
		return
	}
	s := r.project.Services[name]
	command := s.Command
	switch {
	case ours(s):
		command = append([]string{"millwright"}, command...)
	case name == "temporal-ui": // the image's own
		command = []string{"ui-server", "--root", r.ui, "--env", "docker", "start"}
	default:
		command = slices.Clone(command)
		for n, word := range command {
			command[n] = r.path(word)
		}
	}
	if s.HealthCheck != nil && r.health(name) == nil {
		r.t.Errorf("%s is not started, and its health check is content", name)
	}
	program := command[0]
	if path := filepath.Join(r.bin, program); exists(path) {
		program = path
	}
	cmd := exec.Command(program, command[1:]...)
	cmd.Env = r.environ(name)
	output := &buffer{}
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		r.t.Fatalf("%s: %v", name, err)
	}
	r.running[name], r.ended[name], r.output[name] = cmd, make(chan struct{}), output
	go func() {
		_ = cmd.Wait() // how it ended is in ProcessState
		close(r.ended[name])
	}()
	r.t.Cleanup(func() { r.stop(name, time.Minute) })
	if r.isJob(name) {
		r.awaitEnd(name)
		return
	}
	r.awaitHealth(name)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

const patience = 2 * time.Minute

func (r *run) awaitEnd(name string) {
	r.t.Helper()
	select {
	case <-r.ended[name]:
	case <-time.After(patience):
		r.t.Fatalf("%s does not end:\n%s", name, r.output[name].String())
	}
	if !r.running[name].ProcessState.Success() {
		r.t.Fatalf("%s: %s\n%s", name, r.running[name].ProcessState, r.output[name].String())
	}
}

func (r *run) awaitHealth(name string) {
	r.t.Helper()
	r.awaitHealthOf(name, r.ended[name], func() string {
		return r.running[name].ProcessState.String() + "\n" + r.output[name].String()
	})
}

// awaitHealthOf waits until the service's health check succeeds; ending describes
// how the service ended.
func (r *run) awaitHealthOf(name string, ended <-chan struct{}, ending func() string) {
	r.t.Helper()
	began := time.Now()
	deadline := time.After(patience)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := r.health(name)
		if err == nil {
			r.t.Logf("%s is healthy after %s", name, time.Since(began).Round(10*time.Millisecond))
			return
		}
		select {
		case <-tick.C:
		case <-ended:
			r.t.Fatalf("%s ended: %s", name, ending())
		case <-deadline:
			r.t.Fatalf("%s is not healthy: %v", name, err)
		}
	}
}

// health runs the service's own health check once.
func (r *run) health(name string) error {
	check := r.project.Services[name].HealthCheck
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Duration(*check.Timeout))
	defer cancel()
	words := slices.Clone(check.Test[1:])
	switch words[0] {
	case "wget": // Alpine's
		if !slices.Equal(words[1:4], []string{"-q", "-O", "/dev/null"}) || len(words) != 5 {
			return fmt.Errorf("wget is asked for %v", words)
		}
		if status := get(r.resolve(name, words[4])); status != http.StatusOK {
			return fmt.Errorf("it answers %d", status)
		}
		return nil
	case "pg_isready":
		words[0] = filepath.Join(r.postgres.Programs.Dir, words[0])
		words = append(words, "--port", strconv.Itoa(r.ports[name]["5432"]))
	case "/millwright":
		words[0] = millwright
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = r.environ(name)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}

// get returns the status of an answer, 0 without one.
func get(url string) int {
	client := http.Client{Timeout: time.Minute}
	answer, err := client.Get(url)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

// stop stops a process as a container is stopped, and returns its exit status.
func (r *run) stop(name string, grace time.Duration) int {
	cmd := r.running[name]
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-r.ended[name]:
	case <-time.After(grace):
		_ = cmd.Process.Kill()
		<-r.ended[name]
	}
	return cmd.ProcessState.ExitCode()
}

// ask runs a command of the product with the api's settings and reads the JSON it prints.
func (r *run) ask(into any, args ...string) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), millwright, args...)
	cmd.Env = r.environ("api")
	output, err := cmd.Output()
	if err != nil {
		exit, _ := errors.AsType[*exec.ExitError](err)
		r.t.Fatalf("millwright %s: %v\n%s", strings.Join(args, " "), err, exit.Stderr)
	}
	if err := json.Unmarshal(output, into); err != nil {
		r.t.Fatalf("millwright %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// startPostgres starts a cluster as the image leaves it, with the superuser of
// the compose file and nothing else, and runs the init script.
func (r *run) startPostgres() {
	t := r.t
	t.Helper()
	root, err := os.MkdirTemp("", "millwright-compose-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	if err := os.Chmod(root, 0o711); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(root, "log")
	r.postgres, err = postgres.Start(t.Context(), postgres.Options{
		Root: filepath.Join(root, "cluster"), Log: log, Throwaway: true, Port: r.ports["postgres"]["5432"],
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.postgres.Stop)
	s := r.project.Services["postgres"]
	user := *s.Environment["POSTGRES_USER"]
	password := secretFiles(t, r.dir)["postgres_password"]
	super, err := url.Parse(r.postgres.URL)
	if err != nil {
		t.Fatal(err)
	}
	r.sql(super, "CREATE ROLE "+user+" SUPERUSER LOGIN PASSWORD '"+strings.TrimSpace(password)+"'")
	if exec.Command("psql", "--version").Run() != nil && !exists(filepath.Join(r.postgres.Programs.Dir, "psql")) {
		t.Skip("psql, which the init script runs, is not installed")
	}
	own := *super
	own.User, own.Path = url.UserPassword(user, strings.TrimSpace(password)), "/postgres"
	r.sql(&own, "DROP DATABASE millwright", "ALTER ROLE millwright RENAME TO bootstrap")

	script := exec.CommandContext(t.Context(), filepath.Join(r.dir, "deploy/postgres/10-databases.sh"))
	script.Env = []string{
		"PATH=" + r.postgres.Programs.Dir + ":" + os.Getenv("PATH"), "POSTGRES_USER=" + user,
		"PGHOST=" + process.Loopback, "PGPORT=" + super.Port(), "PGPASSWORD=" + strings.TrimSpace(password),
	}
	if output, err := script.CombinedOutput(); err != nil || len(output) > 0 {
		t.Fatalf("the init script: %v\n%s", err, output)
	}
	for n, word := range s.Command {
		if word != "-c" {
			continue
		}
		name, value, _ := strings.Cut(s.Command[n+1], "=")
		r.sql(&own, "ALTER SYSTEM SET "+name+" = '"+value+"'")
	}
	r.awaitHealthOf("postgres", r.postgres.Done(), func() string { return r.postgres.Ending() + "\n" + process.FileTail(log) })
}

func (r *run) sql(database *url.URL, statements ...string) {
	r.t.Helper()
	conn, err := pgx.Connect(r.t.Context(), database.String())
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close(r.t.Context())
	for _, statement := range statements {
		if _, err := conn.Exec(r.t.Context(), statement); err != nil {
			word, _, _ := strings.Cut(statement, " PASSWORD ")
			r.t.Fatalf("%s: %v", word, err)
		}
	}
}

// checkDatabases sees that neither role can reach what is the other's.
func (r *run) checkDatabases() {
	secrets := secretFiles(r.t, r.dir)
	for role, reaches := range map[string][]string{"millwright": {"millwright"}, "temporal": {"temporal", "temporal_visibility"}} {
		for _, database := range []string{"millwright", "temporal", "temporal_visibility", "postgres"} {
			u := url.URL{
				Scheme: "postgres", User: url.UserPassword(role, strings.TrimSpace(secrets[role+"_password"])),
				Host: process.Address(r.ports["postgres"]["5432"]), Path: "/" + database,
			}
			conn, err := pgx.Connect(r.t.Context(), u.String())
			if err == nil {
				conn.Close(r.t.Context())
			}
			if reached := err == nil; reached != slices.Contains(reaches, database) {
				r.t.Errorf("%s connects to %s: %t, %v", role, database, reached, err)
			}
		}
	}
}

// inOrder are the services as depends_on orders them.
func inOrder(project *types.Project) []string {
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
