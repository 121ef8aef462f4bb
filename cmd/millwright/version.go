package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// version is set by the linker when an image is built (see Dockerfile):
// -ldflags "-X main.version=1.2.3".
var version string

// build is what is known about how this program was built.
type build struct {
	// Version is the one the linker set, else the module's, else "dev". Metrics,
	// traces and the OpenAPI document carry it too.
	Version string `json:"version"`
	// Revision is the commit the program was built from, "" if unknown; Modified
	// is true if files differed from it.
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified"`
	// GoVersion is the compiler's version, such as go1.26.8.
	GoVersion string `json:"go_version"`
}

func currentBuild() build {
	info, _ := debug.ReadBuildInfo()
	return readBuild(version, info)
}

// readBuild takes the linker's version and the build information, which may be nil.
func readBuild(linked string, info *debug.BuildInfo) build {
	b := build{Version: cmp.Or(linked, "dev")}
	if info == nil {
		return b
	}
	b.GoVersion = info.GoVersion
	if module := info.Main.Version; linked == "" && module != "" && module != "(devel)" {
		b.Version = strings.TrimPrefix(module, "v")
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func versionCommand() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the program's version, the commit it was built from and Go's version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := currentBuild()
			return out.show(cmd, b, func(w io.Writer) { versionLines(w, b) })
		},
	}
	out.flag(cmd)
	return cmd
}

func versionLines(w io.Writer, b build) {
	revision := cmp.Or(b.Revision, "unknown")
	if b.Modified {
		revision += " (modified)"
	}
	fmt.Fprintf(w, "version\t%s\t\nrevision\t%s\t\ngo\t%s\t\n", b.Version, revision, cmp.Or(b.GoVersion, "unknown"))
}
