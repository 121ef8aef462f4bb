package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLinesAreWhole(t *testing.T) {
	var got []string
	w := Lines(func(line string) { got = append(got, line) })
	for _, piece := range []string{"one\ntw", "o", "\n\nrest"} {
		fmt.Fprint(w, piece)
	}
	if want := []string{"one", "two", ""}; !slices.Equal(got, want) {
		t.Errorf("the lines are %q, want %q", got, want)
	}
}

func TestTheTailOfAFileIsItsLastLines(t *testing.T) {
	var all strings.Builder
	for i := range 100 {
		fmt.Fprintf(&all, "line %d\n", i)
	}
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(all.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(FileTail(path), "\n")
	if len(got) != tailLines || got[0] != "line 85" || got[tailLines-1] != "line 99" {
		t.Errorf("the tail is %q", got)
	}
	if tail := FileTail(path + ".missing"); tail != "" {
		t.Errorf("the tail of a missing file is %q", tail)
	}
}
