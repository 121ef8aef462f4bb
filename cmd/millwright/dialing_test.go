package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Only workers connect to customers' addresses: nothing else makes the client that sends
// webhooks, and the packages that serve people make no HTTP client, except the console for
// the OpenID provider that the operator configures, and a command for developers' receivers.
func TestOnlyWorkersConnectToReceivers(t *testing.T) {
	for text, allowed := range map[string][]string{
		"webhook.NewClient(": {"cmd/millwright/settings.go"}, ".sender()": {"cmd/millwright/worker.go"},
		"http.Client{": {"console/openid.go", "cmd/millwright/replay.go"}, "http.DefaultClient": nil, "http.Get(": nil, "net.Dial": nil,
	} {
		for _, directory := range []string{"api", "console", "service", "web", "cmd/millwright"} {
			files, err := filepath.Glob(filepath.Join("../..", directory, "*.go"))
			if err != nil || len(files) == 0 {
				t.Fatalf("no files in %s: %v", directory, err)
			}
			for _, file := range files {
				content, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				name := directory + "/" + filepath.Base(file)
				known := strings.HasSuffix(file, "_test.go")
				for _, a := range allowed {
					known = known || a == name
				}
				if !known && strings.Contains(string(content), text) {
					t.Errorf("%s has %s", name, text)
				}
			}
		}
	}
}
