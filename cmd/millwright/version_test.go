package main

import (
	"encoding/json"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestReadBuild(t *testing.T) {
	fromGit := &debug.BuildInfo{
		GoVersion: "go1.26.8",
		Main:      debug.Module{Path: "millwright", Version: "v1.4.1-0.20260302121530-0123456789ab+dirty"},
		Settings:  []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}},
	}
	for name, tt := range map[string]struct {
		linked string
		info   *debug.BuildInfo
		want   build
	}{
		"an image": {
			"1.4.0", &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: "(devel)"}},
			build{Version: "1.4.0", GoVersion: "go1.26.8"},
		},
		"a clone": {
			"", fromGit,
			build{Version: "1.4.1-0.20260302121530-0123456789ab+dirty", Revision: "0123456789abcdef", Modified: true, GoVersion: "go1.26.8"},
		},
		"a clone with the linker's version": {
			"1.4.0", fromGit,
			build{Version: "1.4.0", Revision: "0123456789abcdef", Modified: true, GoVersion: "go1.26.8"},
		},
		"no repository": {
			"", &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: "(devel)"}},
			build{Version: "dev", GoVersion: "go1.26.8"},
		},
		"no build information": {"", nil, build{Version: "dev"}},
	} {
		if got := readBuild(tt.linked, tt.info); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestVersionCommand(t *testing.T) {
	defer func(was string) { version = was }(version)
	version = "1.4.0"
	out, err := run(t, "version")
	if err != nil || !strings.HasPrefix(out, "version   1.4.0\nrevision  ") || !strings.HasSuffix(out, "\ngo        "+runtime.Version()+"\n") {
		t.Errorf("it prints %q, %v", out, err)
	}
	out, err = run(t, "version", "--json")
	var printed build
	if err == nil {
		err = json.Unmarshal([]byte(out), &printed)
	}
	if err != nil || printed.Version != "1.4.0" || printed.GoVersion != runtime.Version() {
		t.Errorf("with --json it prints %s, %v", out, err)
	}
	if out, err := run(t, "--version"); err != nil || out != "millwright version 1.4.0\n" {
		t.Errorf("--version prints %q, %v", out, err)
	}
	if _, err := run(t, "version", "now"); err == nil {
		t.Error("it takes an argument")
	}
}
