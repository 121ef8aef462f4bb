package install

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	"millwright/dev/devtest"
)

const (
	// repository is the product's directory, relative to this one.
	repository = "../.."
	// version is the version of the built binary.
	version = "1.2.3-test"
)

// millwright is the path of the binary.
var millwright string

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "millwright-install-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := 1
	if millwright, err = build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		status = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

// build builds the binary: for a container or a machine as the Dockerfile does, otherwise as
// bin/millwright is built, because without cgo everything would be compiled a second time.
func build(dir string) (string, error) {
	line := `go build -buildvcs=false -ldflags "-s -w -X main.version=${VERSION}" -o /out/millwright ./cmd/millwright`
	if *inContainers || *inMachine {
		dockerfile, err := os.ReadFile(filepath.Join(repository, "Dockerfile"))
		if err != nil {
			return "", err
		}
		line = imageBuild.FindString(string(dockerfile))
	}
	path := filepath.Join(dir, "millwright")
	cmd := exec.Command("sh", "-c", strings.Replace(line, "/out/millwright", "'"+path+"'", 1))
	cmd.Dir = repository
	cmd.Env = append(os.Environ(), "VERSION="+version)
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the build fails: %w\n%s", err, output)
	}
	return path, nil
}

// imageBuild matches the Dockerfile's build of a binary that needs nothing else and knows its version.
var imageBuild = regexp.MustCompile(`(?m)^ *CGO_ENABLED=0 go build .*-X main\.version=\$\{VERSION\}.* -o /out/millwright \./cmd/millwright$`)

// installation is the compose file with its secrets, as an operator has it.
type installation struct {
	dir     string
	project *types.Project
}

// install copies the files that the compose file mounts and creates the secrets.
func install(t *testing.T, env ...string) installation {
	t.Helper()
	dir := t.TempDir()
	copyDeploy(t, dir)
	path := filepath.Join(dir, "docker-compose.yml")
	devtest.WriteFile(t, path, devtest.ReadFile(t, filepath.Join(repository, "docker-compose.yml")))
	makeSecrets(t, dir)
	options, err := cli.NewProjectOptions([]string{path},
		cli.WithWorkingDirectory(dir), cli.WithEnv(env), cli.WithInterpolation(true), cli.WithResolvedPaths(true))
	devtest.Must(t, err)
	project, err := options.LoadProject(t.Context())
	devtest.Must(t, err)
	return installation{dir, project}
}

// copyDeploy copies deploy/ into a directory, without the secrets that a developer may have created there.
func copyDeploy(t *testing.T, into string) {
	t.Helper()
	copied := filepath.Join(into, "deploy")
	devtest.Must(t, os.CopyFS(copied, os.DirFS(filepath.Join(repository, "deploy"))))
	secrets, err := filepath.Glob(filepath.Join(copied, "secrets", "[^.]*"))
	devtest.Must(t, err)
	for _, path := range secrets {
		devtest.Must(t, os.Remove(path))
	}
}

func makeSecrets(t *testing.T, dir string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), filepath.Join(dir, "deploy", "make-secrets")).CombinedOutput()
	if err != nil {
		t.Fatalf("deploy/make-secrets: %v\n%s", err, output)
	}
	return string(output)
}

// secretFiles returns the secrets by name.
func secretFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "deploy", "secrets", "[^.]*"))
	devtest.Must(t, err)
	found := map[string]string{}
	for _, path := range paths {
		found[filepath.Base(path)] = devtest.ReadFile(t, path)
	}
	return found
}

// runsProduct reports whether the service runs the product's image.
func runsProduct(s types.ServiceConfig) bool { return strings.HasPrefix(s.Image, "millwright:") }

// isJob reports whether other services wait for the service to end.
func (i installation) isJob(name string) bool {
	for _, s := range i.project.Services {
		if s.DependsOn[name].Condition == types.ServiceConditionCompletedSuccessfully {
			return true
		}
	}
	return false
}

// outputOf returns what the binary prints with these arguments.
func outputOf(ctx context.Context, t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(ctx, millwright, args...)
	cmd.Env = []string{} // empty, not this process's
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("millwright %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return string(output)
}
