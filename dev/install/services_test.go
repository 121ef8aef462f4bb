package install

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/dev/devtest"
	"millwright/dev/postgres"
	"millwright/dev/process"
)

// Runs every service's command and environment as a process, in the order of
// depends_on, until its own health check succeeds. Only addresses and paths differ
// from the containers: they are mapped to those on this machine.
func TestTheServicesRun(t *testing.T) {
	i := install(t, "MILLWRIGHT_VERSION="+version)
	h := newHarness(t, i)
	for _, name := range startOrder(i.project) {
		h.start(name)
	}

	// Commands that an operator runs in the API server's container.
	var imported struct {
		OrganizationID string                 `json:"organization_id"`
		IDs            map[string]string      `json:"ids"`
		Integrations   map[string]credentials `json:"integrations"`
	}
	h.runJSON(&imported, "import", filepath.Join(h.dir, "deploy/example-organization.yaml"))
	var created credentials
	h.runJSON(&created, "integrations", "create", "--organization", imported.OrganizationID, "--name", "BMS", "--scope", "inventory:read", "--json")
	base := "http://" + h.resolve("api", "0.0.0.0:8080")
	for name, c := range map[string]credentials{"the imported": imported.Integrations["erp"], "the created": created} {
		form := url.Values{"grant_type": {"client_credentials"}, "client_id": {c.ClientID}, "client_secret": {c.ClientSecret}}
		response, err := http.PostForm(base+"/v1/oauth/token", form)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("the token request of %s integration returned %d", name, response.StatusCode)
		}
	}
	for _, path := range []string{"/readyz?temporal=1", "/livez", "/docs"} {
		if status := get(base + path); status != http.StatusOK {
			t.Errorf("%s returned %d", path, status)
		}
	}
	for _, service := range []string{"api", "worker"} {
		if status := get("http://" + h.resolve(service, "0.0.0.0:9464") + "/metrics"); status != http.StatusOK {
			t.Errorf("the metrics of the %s returned %d", service, status)
		}
	}
	h.checkDatabases()

	for _, name := range []string{"worker", "api"} {
		p := h.running[name]
		if p.Stop(); p.ExitStatus() != 0 {
			t.Error("when it is stopped,", p.Failure())
		}
	}
}

// credentials are an integration's client id and secret.
type credentials struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
}

// start starts the service and waits: for a job's end, or until a server is healthy.
func (h *harness) start(name string) {
	h.t.Helper()
	if name == "postgres" {
		h.startPostgres()
		return
	}
	s := h.project.Services[name]
	command := s.Command
	switch {
	case runsProduct(s):
		command = append([]string{"millwright"}, command...)
	case name == "temporal-ui": // the image's own
		command = []string{"ui-server", "--root", h.ui, "--env", "docker", "start"}
	default:
		command = slices.Clone(command)
		for n, word := range command {
			command[n] = h.path(word)
		}
	}
	if s.HealthCheck != nil && h.health(name) == nil {
		h.t.Errorf("the health check of %s succeeds before it is started", name)
	}
	program := command[0]
	if path := filepath.Join(h.bin, program); exists(path) {
		program = path
	}
	cmd := exec.Command(program, command[1:]...)
	cmd.Env = h.environ(name)
	p, err := process.Start(cmd, process.Options{Name: name, Log: filepath.Join(h.dir, name+".log")})
	if err != nil {
		h.t.Fatal(err)
	}
	h.running[name] = p
	h.t.Cleanup(p.Stop)
	if !h.isJob(name) {
		h.awaitHealth(name, p)
		return
	}
	ctx, cancel := context.WithTimeout(h.t.Context(), startLimit)
	defer cancel()
	if err := p.Wait(ctx); err != nil {
		h.t.Fatal(err)
	}
}

const startLimit = 2 * time.Minute

// awaitHealth waits until the service's health check succeeds.
func (h *harness) awaitHealth(name string, p *process.Process) {
	h.t.Helper()
	await(h.t, func() error {
		if !p.Running() {
			h.t.Fatal(p.Failure())
		}
		return h.health(name)
	})
}

// health runs the service's health check once.
func (h *harness) health(name string) error {
	check := h.project.Services[name].HealthCheck
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Duration(*check.Timeout))
	defer cancel()
	words := slices.Clone(check.Test[1:])
	switch words[0] {
	case "wget": // Alpine's
		if !slices.Equal(words[1:4], []string{"-q", "-O", "/dev/null"}) || len(words) != 5 {
			return fmt.Errorf("unexpected wget command %v", words)
		}
		if status := get(h.resolve(name, words[4])); status != http.StatusOK {
			return fmt.Errorf("it returned %d", status)
		}
		return nil
	case "pg_isready":
		words[0] = filepath.Join(h.postgres.Programs.Dir, words[0])
		words = append(words, "--port", strconv.Itoa(h.ports[name]["5432"]))
	case "/millwright":
		words[0] = millwright
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = h.environ(name)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}

// get returns the status of a response, 0 if none came.
func get(url string) int {
	client := http.Client{Timeout: time.Minute}
	response, err := client.Get(url)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// startPostgres starts a cluster as the image leaves it, with only the superuser of
// the compose file, and runs the init script.
func (h *harness) startPostgres() {
	t := h.t
	t.Helper()
	root := devtest.OpenDirectory(t)
	var err error
	h.postgres, err = postgres.Start(t.Context(), postgres.Options{
		Root: filepath.Join(root, "cluster"), Log: filepath.Join(root, "log"), Throwaway: true, Port: h.ports["postgres"]["5432"],
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.postgres.Stop)
	s := h.project.Services["postgres"]
	user := *s.Environment["POSTGRES_USER"]
	password := strings.TrimSpace(secretFiles(t, h.dir)["postgres_password"])
	super, err := url.Parse(h.postgres.URL)
	if err != nil {
		t.Fatal(err)
	}
	h.sql(super, "CREATE ROLE "+user+" SUPERUSER LOGIN PASSWORD '"+password+"'")
	if exec.Command("psql", "--version").Run() != nil && !exists(filepath.Join(h.postgres.Programs.Dir, "psql")) {
		t.Skip("psql, which the init script runs, is not installed")
	}
	own := *super
	own.User, own.Path = url.UserPassword(user, password), "/postgres"
	h.sql(&own, "DROP DATABASE millwright", "ALTER ROLE millwright RENAME TO bootstrap")

	script := exec.CommandContext(t.Context(), filepath.Join(h.dir, "deploy/postgres/10-databases.sh"))
	script.Env = []string{
		"PATH=" + h.postgres.Programs.Dir + ":" + os.Getenv("PATH"), "POSTGRES_USER=" + user,
		"PGHOST=" + process.Loopback, "PGPORT=" + super.Port(), "PGPASSWORD=" + password,
	}
	if output, err := script.CombinedOutput(); err != nil || len(output) > 0 {
		t.Fatalf("the init script: %v\n%s", err, output)
	}
	for n, word := range s.Command {
		if word != "-c" {
			continue
		}
		name, value, _ := strings.Cut(s.Command[n+1], "=")
		h.sql(&own, "ALTER SYSTEM SET "+name+" = '"+value+"'")
	}
	h.awaitHealth("postgres", h.postgres.Process)
}

// checkDatabases checks that each role can connect only to its own databases.
func (h *harness) checkDatabases() {
	secrets := secretFiles(h.t, h.dir)
	for role, reaches := range map[string][]string{"millwright": {"millwright"}, "temporal": {"temporal", "temporal_visibility"}} {
		for _, database := range []string{"millwright", "temporal", "temporal_visibility", "postgres"} {
			u := url.URL{
				Scheme: "postgres", User: url.UserPassword(role, strings.TrimSpace(secrets[role+"_password"])),
				Host: process.Address(h.ports["postgres"]["5432"]), Path: "/" + database,
			}
			conn, err := pgx.Connect(h.t.Context(), u.String())
			if err == nil {
				conn.Close(h.t.Context())
			}
			if reached := err == nil; reached != slices.Contains(reaches, database) {
				h.t.Errorf("%s can connect to %s: %t, %v", role, database, reached, err)
			}
		}
	}
}
