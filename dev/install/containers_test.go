package install

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/dev/devtest"
	"millwright/dev/process"
)

var inContainers = flag.Bool("containers", false, "start docker-compose.yml in containers, as make compose-test does")

// Installs, uses, backs up and restores with the commands of docs/running.md.
func TestTheContainersRun(t *testing.T) {
	if !*inContainers {
		t.Skip("make compose-test runs it")
	}
	r := &walk{t: t}
	removeImages(t) // after a run that was killed
	t.Cleanup(func() { removeImages(t) })
	hook := newHook(t)
	first := installContainers(r, "millwright-test", hook)
	var images string
	r.step("preparing the images", func(t *testing.T) { images = first.prepareImages(t) })
	r.step("start", func(t *testing.T) { first.sh(t, documented(t, `^docker compose up --detach --wait$`)) })
	r.step("health of the worker", func(t *testing.T) {
		began := time.Now()
		first.sh(t, `docker compose exec -T worker /millwright health worker`)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %s", took)
		}
	})

	var imported struct {
		IDs          map[string]string      `json:"ids"`
		Integrations map[string]credentials `json:"integrations"`
	}
	r.step("import", func(t *testing.T) {
		first.sh(t, `cp deploy/example-organization.yaml acme.yaml`)
		first.json(t, &imported, documented(t, `import /acme\.yaml$`))
	})
	erp, place := imported.Integrations["erp"], imported.IDs["ahu1"]
	r.step("webhook address", func(t *testing.T) {
		var created struct {
			Secret string `json:"secret"`
		}
		first.json(t, &created, first.millwright(t)+" webhooks create --integration "+imported.IDs["erp"]+
			" --url "+hook.url+" --event work_order.created,work_order.cancelled --json")
		hook.secret = created.Secret
	})
	var order string
	r.step("call and delivery", func(t *testing.T) { order = first.create(t, erp, place) })
	r.step("rotation of the database's password", func(t *testing.T) {
		before := secretFiles(t, first.dir)
		first.sh(t, documented(t, `ALTER ROLE millwright PASSWORD .*psql`))
		if after := secretFiles(t, first.dir); after["database_url"] == before["database_url"] {
			t.Error("the password is the old one")
		}
		first.awaitReady(t)
		first.create(t, erp, place)
	})
	r.step("databases apart", first.checkDatabases)
	r.step("upgrade", func(t *testing.T) {
		first.sh(t, documented(t, `^docker compose run --rm migrate$`))
		first.sh(t, documented(t, `^docker compose up --detach --no-deps --wait worker api$`))
	})
	r.step("backup", func(t *testing.T) { first.sh(t, documented(t, `pg_dump.*>millwright\.dump`)) })
	r.step("stop", first.stop)

	second := installContainers(r, "millwright-test-restored", hook)
	r.step("restore into a second project", func(t *testing.T) {
		first.sh(t, `cp millwright.dump '`+second.dir+`' && cp --force deploy/secrets/secret_sealing_keys '`+second.dir+`/deploy/secrets'`)
		if said := second.sh(t, documented(t, `pg_restore .*<millwright\.dump`)); strings.Contains(said, "WARNING") {
			t.Errorf("it prints warnings:\n%s", said)
		}
	})
	r.step("call and delivery after the restore", func(t *testing.T) {
		second.post(t, erp, "/work-orders/"+order+"/cancel", `{"reason": "Restored"}`)
		hook.await(t, "work_order.cancelled", order)
		second.create(t, erp, place)
	})
	r.step("stop of the second project", second.stop)
	engine := first.sh(t, `docker version --format 'Docker {{.Server.Version}}, Compose '"$(docker compose version --short)"`)
	r.write("A run in containers", "`make compose-test`, which runs the Compose commands", engine, "images | "+images)
}

// credentials are an integration's client id and secret.
type credentials struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
}

// containers is an installation whose services run in containers.
type containers struct {
	installation
	shell
	t    *testing.T
	name string // the project's
	api  string // the URL of its API
	hook *hook
}

// installContainers makes an installation with free ports, whose containers can reach the receiver.
func installContainers(r *walk, name string, to *hook) *containers {
	r.t.Helper()
	ports := devtest.FreePorts(r.t, 2)
	api := process.Address(ports[0])
	choices := []string{
		"COMPOSE_PROJECT_NAME=" + name, "MILLWRIGHT_VERSION=" + version, "API_PUBLISH=" + api,
		"MILLWRIGHT_PUBLIC_URL=http://" + api, "WEBHOOK_ALLOW_NETWORKS=" + to.network,
	}
	installed := install(r.t, choices...)
	c := &containers{installation: installed, shell: here(installed.dir), t: r.t, name: name, api: "http://" + api, hook: to}
	example := devtest.ReadFile(r.t, filepath.Join(c.dir, "deploy/example.env"))
	for file, content := range map[string]string{
		".env":         example + strings.Join(choices, "\n") + "\n",
		"receiver.pem": to.certificate,
		"docker-compose.override.yml": `
services:
  temporal-ui: {ports: !override ["` + process.Address(ports[1]) + `:8080"]}
  api: {extra_hosts: ["example.com:host-gateway"]}
  worker:
    extra_hosts: ["example.com:host-gateway"]
    volumes: ["./receiver.pem:/etc/ssl/certs/receiver.pem:ro"]
`,
	} {
		devtest.Must(r.t, os.WriteFile(filepath.Join(c.dir, file), []byte(content), 0o644))
	}
	clean := func() {
		if said, err := c.try(r.t, `docker compose down --volumes --remove-orphans`); err != nil {
			r.t.Errorf("%v\n%s", err, said)
		}
	}
	clean() // after a run that was killed
	r.t.Cleanup(func() {
		if r.t.Failed() {
			said, _ := c.try(r.t, `docker compose ps --all; docker compose logs --tail 5`)
			r.t.Log(said)
		}
		clean()
	})
	return c
}

// millwright is what running.md puts in place of the program's name.
func (c *containers) millwright(t *testing.T) string {
	t.Helper()
	return documented(t, `^docker compose run [^\n]* api$`)
}

func (c *containers) awaitReady(t *testing.T) {
	t.Helper()
	await(t, func() error {
		client := http.Client{Timeout: time.Minute}
		response, err := client.Get(c.api + "/readyz?temporal=1")
		if err != nil {
			return err
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("/readyz returned %d", response.StatusCode)
		}
		return nil
	})
}

// checkDatabases checks that each role can connect only to its own databases.
func (c *containers) checkDatabases(t *testing.T) {
	secrets := secretFiles(t, c.dir)
	for role, reaches := range map[string][]string{"millwright": {"millwright"}, "temporal": {"temporal", "temporal_visibility"}} {
		for _, database := range []string{"millwright", "temporal", "temporal_visibility", "postgres"} {
			_, err := c.try(t, "docker compose exec -T --env PGPASSWORD="+strings.TrimSpace(secrets[role+"_password"])+
				" postgres psql --host 127.0.0.1 --username "+role+" --dbname "+database+" --command 'SELECT 1'")
			if reached := err == nil; reached != slices.Contains(reaches, database) {
				t.Errorf("%s can connect to %s: %t, %v", role, database, reached, err)
			}
		}
	}
}

// create creates a work order through the published port and waits for its delivery.
func (c *containers) create(t *testing.T, as credentials, place string) string {
	t.Helper()
	id := c.post(t, as, "/work-orders", `{"title": "Replace the filter", "inventory_id": "`+place+`"}`)
	c.hook.await(t, "work_order.created", id)
	return id
}

// post makes a call with a new access token and returns the id of the record it responds with.
func (c *containers) post(t *testing.T, as credentials, path, body string) string {
	t.Helper()
	var token struct {
		AccessToken string `json:"access_token"`
	}
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {as.ClientID}, "client_secret": {as.ClientSecret}}
	c.send(t, "/v1/oauth/token", form.Encode(), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, &token)
	var record struct {
		ID string `json:"id"`
	}
	c.send(t, "/v1"+path, body, http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + token.AccessToken}}, &record)
	return record.ID
}

func (c *containers) send(t *testing.T, path, body string, header http.Header, into any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.api+path, strings.NewReader(body))
	devtest.Must(t, err)
	request.Header = header
	client := http.Client{Timeout: time.Minute}
	response, err := client.Do(request)
	devtest.Must(t, err)
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode/100 != 2 || json.Unmarshal(said, into) != nil {
		t.Fatalf("%s: status %d, %v\n%s", path, response.StatusCode, err, said)
	}
}

// stop stops every container: none is killed, none has failed or been started again.
func (c *containers) stop(t *testing.T) {
	t.Helper()
	c.sh(t, `docker compose stop`)
	states := strings.Fields(c.sh(t, `docker ps --all --quiet --filter label=com.docker.compose.project=`+c.name+` | xargs docker inspect \
		--format '{{.Name}}:status={{.State.ExitCode}},restarts={{.RestartCount}},killed={{.State.OOMKilled}}'`))
	if len(states) != len(c.project.Services) {
		t.Errorf("the containers are %v", states)
	}
	for _, state := range states {
		state = strings.Replace(state, "-temporal-ui-1:status=143", "-temporal-ui-1:status=0", 1) // SIGTERM ends it, as it handles none
		if !strings.HasSuffix(state, ":status=0,restarts=0,killed=false") {
			t.Error(state)
		}
	}
	c.sh(t, `docker compose down --volumes`)
}

// hook is a receiver on this machine, as example.com, for which httptest has a certificate.
type hook struct {
	url, network, certificate, secret string

	mu       sync.Mutex
	received []string
}

func newHook(t *testing.T) *hook {
	t.Helper()
	subnet, err := exec.CommandContext(t.Context(), "docker", "network", "inspect", "bridge", "--format", "{{(index .IPAM.Config 0).Subnet}}").Output()
	devtest.Must(t, err)
	network, err := netip.ParsePrefix(strings.TrimSpace(string(subnet)))
	devtest.Must(t, err)
	own, err := net.InterfaceAddrs()
	devtest.Must(t, err)
	gateway := slices.IndexFunc(own, func(a net.Addr) bool {
		at, err := netip.ParsePrefix(a.String())
		return err == nil && network.Contains(at.Addr())
	})
	if gateway < 0 {
		t.Skipf("the container engine is on another machine: none of %v is in %s", own, network)
	}
	host, _, _ := strings.Cut(own[gateway].String(), "/")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	devtest.Must(t, err)
	h := &hook{network: network.String()}
	server := httptest.NewUnstartedServer(h)
	_ = server.Listener.Close()
	server.Listener = listener
	server.StartTLS()
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	devtest.Must(t, err)
	h.url = "https://example.com:" + port + "/"
	h.certificate = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	return h
}

// ServeHTTP verifies the signature as docs/receiving-webhooks.md explains it.
func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	sent, signatures, _ := strings.Cut(r.Header.Get("Service-Signature"), ",")
	mac := hmac.New(sha256.New, []byte(h.secret))
	fmt.Fprintf(mac, "%s.%s", strings.TrimPrefix(sent, "t="), body)
	if err != nil || !strings.Contains(signatures, "v1="+hex.EncodeToString(mac.Sum(nil))) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.received = append(h.received, r.Header.Get("Service-Event-Type")+" "+string(body))
}

// await waits for a verified event about the record.
func (h *hook) await(t *testing.T, event, record string) {
	t.Helper()
	await(t, func() error {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, received := range h.received {
			if strings.HasPrefix(received, event+" ") && strings.Contains(received, record) {
				return nil
			}
		}
		return fmt.Errorf("no %s of %s came; %d others did", event, record, len(h.received))
	})
}
