package install

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"go.temporal.io/server/common/dynamicconfig"
	"go.yaml.in/yaml/v3"

	"millwright/dev/devtest"
)

// pinned is an image with a version of at least two numbers.
var pinned = regexp.MustCompile(`^[a-z][a-z0-9/-]*:v?\d+\.\d+(\.\d+)?(-[a-z0-9.]+)?$`)

// The longest time that api and worker take to stop, by their own limits.
const stopsWithin = 25 * time.Second

func TestEveryServiceIsPinnedWatchedAndConfined(t *testing.T) {
	i := install(t, "MILLWRIGHT_VERSION="+version)
	all, err := i.project.WithProfiles([]string{"*"})
	devtest.Must(t, err)
	for name, s := range all.Services {
		t.Run(name, func(t *testing.T) {
			if !pinned.MatchString(s.Image) {
				t.Errorf("the image %q is not pinned", s.Image)
			}
			user, _, _ := strings.Cut(s.User, ":")
			if id, err := strconv.Atoi(user); err != nil || id == 0 {
				t.Errorf("the user %q is not a number other than 0", s.User)
			}
			if !s.ReadOnly || !slices.Contains(s.CapDrop, "ALL") || len(s.CapAdd) > 0 || s.Privileged ||
				!slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
				t.Error("it lacks read_only, cap_drop ALL or no-new-privileges")
			}
			for _, v := range s.Volumes {
				if v.Type == types.VolumeTypeBind && !v.ReadOnly {
					t.Errorf("%s is writable", v.Source)
				}
			}
			if s.Deploy == nil || s.Deploy.Resources.Limits == nil {
				t.Fatal("it has no limits")
			}
			if l := s.Deploy.Resources.Limits; l.NanoCPUs <= 0 || l.MemoryBytes <= 0 || l.Pids <= 0 {
				t.Errorf("its limits are %+v", l)
			}
			if s.Logging == nil || s.Logging.Options["max-size"] == "" {
				t.Error("its log grows without limit")
			}
			if i.isJob(name) {
				if !strings.HasPrefix(s.Restart, "on-failure:") || s.HealthCheck != nil {
					t.Errorf("a job restarts a few times on failure and has no health check; restart is %q", s.Restart)
				}
				return
			}
			if s.Restart != types.RestartPolicyUnlessStopped {
				t.Errorf("restart is %q", s.Restart)
			}
			if g := s.StopGracePeriod; runsProduct(s) && (g == nil || time.Duration(*g) <= stopsWithin) {
				t.Errorf("it has %v to stop", g)
			}
			if h := s.HealthCheck; h == nil || h.Disable || len(h.Test) < 2 || h.Test[0] != "CMD" ||
				h.Interval == nil || h.Timeout == nil || h.Retries == nil || h.StartPeriod == nil {
				t.Errorf("its health check is not complete: %+v", s.HealthCheck)
			}
		})
	}
}

func TestServicesStartInOrder(t *testing.T) {
	i := install(t)
	want := map[string]map[string]string{
		"postgres":        {},
		"temporal-schema": {"postgres": types.ServiceConditionHealthy},
		"temporal":        {"temporal-schema": types.ServiceConditionCompletedSuccessfully},
		"temporal-ui":     {"temporal": types.ServiceConditionHealthy},
		"namespace":       {"temporal": types.ServiceConditionHealthy},
		"migrate":         {"postgres": types.ServiceConditionHealthy},
		"api":             {"migrate": types.ServiceConditionCompletedSuccessfully, "namespace": types.ServiceConditionCompletedSuccessfully},
		"worker":          {"migrate": types.ServiceConditionCompletedSuccessfully, "namespace": types.ServiceConditionCompletedSuccessfully},
	}
	if got := slices.Sorted(maps.Keys(i.project.Services)); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
		t.Errorf("the services are %v", got)
	}
	for name, s := range i.project.Services {
		got := map[string]string{}
		for on, d := range s.DependsOn {
			got[on] = d.Condition
		}
		if !maps.Equal(got, want[name]) {
			t.Errorf("%s waits for %v, want %v", name, got, want[name])
		}
	}
}

func TestOnlyTheAPIAndTheUIAreReachable(t *testing.T) {
	i := install(t)
	if !i.project.Networks["backend"].Internal || i.project.Networks["edge"].Internal {
		t.Error("backend is not internal, or edge is")
	}
	outside := map[string]bool{"api": true, "temporal-ui": true, "worker": true} // the worker goes out and publishes nothing
	for name, s := range i.project.Services {
		if _, on := s.Networks["edge"]; on != outside[name] {
			t.Errorf("%s is on edge: %t", name, on)
		}
		if _, on := s.Networks["backend"]; !on || s.NetworkMode != "" {
			t.Errorf("%s is not on backend", name)
		}
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" || name == "worker" || !outside[name] {
				t.Errorf("%s publishes %s:%s", name, p.HostIP, p.Published)
			}
		}
	}
	elsewhere := install(t, "API_PUBLISH=0.0.0.0:80")
	if p := elsewhere.project.Services["api"].Ports; len(p) != 1 || p[0].HostIP != "0.0.0.0" || p[0].Published != "80" {
		t.Errorf("API_PUBLISH makes %+v", p)
	}
}

// The profile “monitoring” scrapes every API server and worker, has the rules and the dashboard of
// docs/, and is reachable only from this machine, through Grafana.
func TestMonitoring(t *testing.T) {
	i := install(t)
	monitored, err := i.project.WithProfiles([]string{"monitoring"})
	devtest.Must(t, err)
	prometheus, grafana := monitored.Services["prometheus"], monitored.Services["grafana"]
	mounted := func(s types.ServiceConfig) map[string]string {
		files := map[string]string{}
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeBind {
				source, err := filepath.Rel(i.dir, v.Source)
				devtest.Must(t, err)
				files[v.Target] = source
			}
		}
		return files
	}
	read := func(source string, into any) {
		t.Helper()
		if err := yaml.Unmarshal([]byte(devtest.ReadFile(t, filepath.Join(repository, source))), into); err != nil {
			t.Fatalf("%s: %v", source, err)
		}
	}

	var scraped struct {
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			DNS []struct {
				Names []string
				Port  int
			} `yaml:"dns_sd_configs"`
		} `yaml:"scrape_configs"`
	}
	files := mounted(prometheus)
	config, _ := strings.CutPrefix(prometheus.Command[0], "--config.file=")
	read(files[config], &scraped)
	if len(scraped.RuleFiles) != 1 || files[scraped.RuleFiles[0]] != "docs/alerts/millwright.yaml" {
		t.Errorf("the rules are %v of %v", scraped.RuleFiles, files)
	}
	at := scraped.ScrapeConfigs[0].DNS[0]
	for _, name := range at.Names {
		if address := i.project.Services[name].Environment["METRICS_ADDR"]; address == nil || *address != "0.0.0.0:"+strconv.Itoa(at.Port) {
			t.Errorf("%s serves its metrics at %v, port %d is scraped", name, address, at.Port)
		}
	}
	if !slices.Equal(at.Names, []string{"api", "worker"}) || len(prometheus.Ports) != 0 || prometheus.Networks["backend"] != nil && len(prometheus.Networks) != 1 {
		t.Errorf("Prometheus scrapes %v, publishes %v, is on %v", at.Names, prometheus.Ports, prometheus.Networks)
	}

	var sources struct {
		Datasources []struct{ URL, Type string }
	}
	var dashboards struct {
		Providers []struct{ Options struct{ Path string } }
	}
	files = mounted(grafana)
	read(files["/etc/grafana/provisioning/datasources/millwright.yaml"], &sources)
	read(files["/etc/grafana/provisioning/dashboards/millwright.yaml"], &dashboards)
	if len(sources.Datasources) != 1 || sources.Datasources[0].URL != "http://prometheus:9090" || sources.Datasources[0].Type != "prometheus" {
		t.Errorf("the data sources are %+v", sources.Datasources)
	}
	if len(dashboards.Providers) != 1 || files[dashboards.Providers[0].Options.Path+"/millwright.json"] != "docs/grafana/millwright.json" {
		t.Errorf("the dashboards are in %+v, mounted is %v", dashboards.Providers, files)
	}
	if p := grafana.Ports; len(p) != 1 || p[0].HostIP != "127.0.0.1" {
		t.Errorf("Grafana publishes %+v", p)
	}
}

func TestConnectionsFitIntoPostgres(t *testing.T) {
	i := install(t, "WORKERS=2")
	number := func(service, name string) int {
		t.Helper()
		value := i.project.Services[service].Environment[name]
		if value == nil {
			t.Fatalf("%s has no %s", service, name)
		}
		n, err := strconv.Atoi(*value)
		devtest.Must(t, err)
		return n
	}
	const temporalServices, reserved = 4, 3
	needed := temporalServices * (number("temporal", "SQL_MAX_CONNS") + number("temporal", "SQL_VIS_MAX_CONNS"))
	for _, name := range []string{"api", "worker"} {
		s := i.project.Services[name]
		needed += s.GetScale() * number(name, "DATABASE_MAX_CONNECTIONS")
	}
	allowed := 0
	for _, argument := range i.project.Services["postgres"].Command {
		if value, ok := strings.CutPrefix(argument, "max_connections="); ok {
			allowed, _ = strconv.Atoi(value)
		}
	}
	if needed+reserved > allowed {
		t.Errorf("%d connections are needed, %d allowed", needed+reserved, allowed)
	}
}

// knownSettings returns the names that `millwright config` lists.
func knownSettings(t *testing.T) []string {
	t.Helper()
	known := []string{"GOMEMLIMIT"} // which Go itself reads
	text, files, _ := strings.Cut(outputOf(t.Context(), t, "config"), "\n\n")
	for line := range strings.Lines(text) {
		if name, _, _ := strings.Cut(line, " "); name != "SETTING" && strings.ToUpper(name) == name {
			known = append(known, name)
		}
	}
	secrets, _, _ := strings.Cut(files, " can ")
	for name := range strings.SplitSeq(secrets, ", ") {
		known = append(known, name+"_FILE")
	}
	if len(known) < 20 || !slices.Contains(known, "DATABASE_URL_FILE") {
		t.Fatalf("cannot find the settings in the output of millwright config: %v", known)
	}
	return known
}

// TestTheContainersRun proves that none is missing.
func TestTheProgramKnowsTheCommandsAndSettings(t *testing.T) {
	known := knownSettings(t)
	for name, s := range install(t).project.Services {
		if !runsProduct(s) {
			continue
		}
		for setting := range s.Environment {
			if !slices.Contains(known, setting) {
				t.Errorf("%s sets %s, an unknown setting", name, setting)
			}
		}
		wantCommand(t, s.Command[0], s.Command)
		if s.HealthCheck != nil {
			wantCommand(t, "health "+name, s.HealthCheck.Test[2:])
		}
	}
}

// wantCommand fails the test if the help that the arguments print is of another command.
func wantCommand(t *testing.T, name string, args []string) {
	t.Helper()
	help := outputOf(t.Context(), t, append(slices.Clone(args), "--help")...)
	if !strings.Contains(help, "\n  millwright "+name) {
		t.Errorf("%v is not the command %s:\n%s", args, name, help)
	}
}

func TestTheImagesKnowTheSettings(t *testing.T) {
	i := install(t)
	server, ui := moduleDirectory(t, "go.temporal.io/server"), moduleDirectory(t, "github.com/temporalio/ui-server/v2")
	schemaTool := devtest.ReadFile(t, filepath.Join(server, "tools/sql/main.go"))
	template := devtest.ReadFile(t, filepath.Join(server, "common/config/config_template_embedded.yaml"))
	uiConfig := devtest.ReadFile(t, filepath.Join(ui, "config/docker.yaml"))
	knows := map[string]func(name string) bool{
		"temporal": func(name string) bool {
			return strings.Contains(template, `(env "`+name+`")`) || strings.Contains(template, `env "`+name+`" }`)
		},
		"temporal-schema": func(name string) bool { return strings.Contains(schemaTool, `EnvVar: "`+name+`"`) },
		"temporal-ui":     func(name string) bool { return strings.Contains(uiConfig, `env "`+name+`"`) },
		// https://hub.docker.com/_/postgres
		"postgres": func(name string) bool {
			return slices.Contains([]string{"POSTGRES_USER", "POSTGRES_PASSWORD_FILE", "POSTGRES_INITDB_ARGS"}, name)
		},
	}
	for service, known := range knows {
		if known("NO_SUCH_SETTING") {
			t.Errorf("%s accepts any name", service)
		}
		for name := range i.project.Services[service].Environment {
			if !known(name) {
				t.Errorf("%s does not know %s", service, name)
			}
		}
	}
	if file := dynamicconfig.LoadYamlFile([]byte(devtest.ReadFile(t, "../../deploy/temporal/dynamic.yaml"))); len(file.Map) == 0 || len(file.Warnings)+len(file.Errors) > 0 {
		t.Errorf("the dynamic configuration: %v %v", file.Warnings, file.Errors)
	}
	// The image and the server that the development stack embeds have the same schema.
	if image := i.project.Services["temporal"].Image; !strings.HasPrefix(filepath.Base(server), "server@v"+minor(image)+".") {
		t.Errorf("the image is %s, the module %s", image, filepath.Base(server))
	}
	if a, b := i.project.Services["temporal"].Image, i.project.Services["temporal-schema"].Image; strings.Split(a, ":")[1] != strings.Split(b, ":")[1] {
		t.Errorf("%s runs on the schema of %s", a, b)
	}
}

// minor returns an image's version without its last number.
func minor(image string) string {
	_, tag, _ := strings.Cut(image, ":")
	return tag[:strings.LastIndex(tag, ".")]
}

func TestSecretsAreInSeparateFiles(t *testing.T) {
	i := install(t)
	for name, s := range i.project.Services {
		for setting, value := range s.Environment {
			secret := regexp.MustCompile(`PASSWORD|PWD|_KEYS|_KEY$|DATABASE_URL`).MatchString(setting)
			if secret && (!strings.HasSuffix(setting, "_FILE") || !strings.HasPrefix(*value, "/run/secrets/")) {
				t.Errorf("%s has %s in its environment", name, setting)
			}
			if path, ok := strings.CutPrefix(*value, "/run/secrets/"); ok &&
				!slices.ContainsFunc(s.Secrets, func(c types.ServiceSecretConfig) bool { return c.Source == path }) {
				t.Errorf("%s reads %s but does not get it", name, *value)
			}
		}
	}
	created := secretFiles(t, i.dir)
	for name, secret := range i.project.Secrets {
		if created[name] == "" || filepath.Base(secret.File) != name {
			t.Errorf("make-secrets does not create %s", name)
		}
	}
	if len(created) != len(i.project.Secrets) {
		t.Errorf("some secrets are not used: %v", slices.Sorted(maps.Keys(created)))
	}
	if !slices.Contains(strings.Split(devtest.ReadFile(t, filepath.Join(repository, ".dockerignore")), "\n"), "deploy") {
		t.Error("deploy/ is sent to the image's build")
	}
}

func TestMakeSecretsNeverOverwrites(t *testing.T) {
	i := install(t)
	first := secretFiles(t, i.dir)
	for name, secret := range secretFiles(t, install(t).dir) {
		if secret == first[name] {
			t.Errorf("two installations have the same %s", name)
		}
	}
	if said := makeSecrets(t, i.dir); !strings.Contains(said, "nothing changed") {
		t.Errorf("a second run prints %q", said)
	}
	if !maps.Equal(first, secretFiles(t, i.dir)) {
		t.Error("a second run changes secrets")
	}
	devtest.Must(t, os.Remove(filepath.Join(i.dir, "deploy/secrets/token_signing_keys")))
	if said := makeSecrets(t, i.dir); !strings.Contains(said, "secrets: token_signing_keys\n") {
		t.Errorf("a run for one secret prints %q", said)
	}
	again := secretFiles(t, i.dir)
	if again["token_signing_keys"] == first["token_signing_keys"] || again["secret_sealing_keys"] != first["secret_sealing_keys"] {
		t.Error("the run replaced a secret that was not missing")
	}
	directory, err := os.Stat(filepath.Join(i.dir, "deploy/secrets"))
	if err != nil || directory.Mode().Perm() != 0o700 {
		t.Errorf("the directory is open to others: %v, %v", directory.Mode(), err)
	}
	for name := range again {
		file, err := os.Stat(filepath.Join(i.dir, "deploy/secrets", name))
		if err != nil || file.Mode().Perm() != 0o444 {
			t.Errorf("%s has mode %v, %v; want 0444: containers' users read it", name, file.Mode(), err)
		}
	}
}

func TestTheImagesBinaryIsStaticAndKnowsItsVersion(t *testing.T) {
	if !imageBuild.MatchString(devtest.ReadFile(t, filepath.Join(repository, "Dockerfile"))) {
		t.Errorf("no line of the Dockerfile matches %s", imageBuild)
	}
	if got := outputOf(t.Context(), t, "--version"); !strings.Contains(got, version) {
		t.Errorf("--version prints %q", got)
	}
}

func TestTheImagesBuildHasAllPackages(t *testing.T) {
	ignored := strings.Split(devtest.ReadFile(t, filepath.Join(repository, ".dockerignore")), "\n")
	// Without cgo, as the image is built, a package all of whose files need it is an error.
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if .Main}}{{slice $.ImportPath (len .Path)}}{{end}}{{end}}", "./cmd/millwright")
	list.Dir, list.Env = repository, append(os.Environ(), "CGO_ENABLED=0")
	packages, err := list.Output()
	devtest.Must(t, err)
	found := 0
	for path := range strings.Lines(string(packages)) {
		directory, own := strings.CutPrefix(strings.TrimSpace(path), "/")
		if !own {
			continue
		}
		found++
		top, _, _ := strings.Cut(directory, "/")
		if slices.Contains(ignored, top) {
			t.Errorf("%s is missing from the image's build", directory)
		}
	}
	if found < 5 {
		t.Errorf("only %d packages found", found)
	}
}

func moduleDirectory(t *testing.T, path string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", path).Output()
	if err != nil {
		t.Fatalf("find the module %s: %v", path, err)
	}
	return strings.TrimSpace(string(output))
}

// tool returns the path of a program among go.mod's tools, and builds it if
// necessary.
func tool(t *testing.T, path string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "go", "tool", "-n", path).Output()
	if err != nil {
		t.Fatalf("build %s: %v", path, err)
	}
	return strings.TrimSpace(string(output))
}
