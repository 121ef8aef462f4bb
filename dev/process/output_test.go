package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPrefixedKeepsLinesWhole(t *testing.T) {
	var b strings.Builder
	w := Prefixed(&b, "api    | ")
	for _, piece := range []string{"one\ntw", "o", "\n\nrest"} {
		fmt.Fprint(w, piece)
	}
	if want := "api    | one\napi    | two\napi    | \n"; b.String() != want {
		t.Errorf("written: %q, want %q", b.String(), want)
	}
	if want := "one\ntwo\n\nrest"; w.Tail() != want {
		t.Errorf("the tail is %q, want %q", w.Tail(), want)
	}
}

func TestTailsAreTheLastLines(t *testing.T) {
	var all strings.Builder
	lines := NewLines(func(string) {})
	for i := range 100 {
		fmt.Fprintf(&all, "line %d\n", i)
		fmt.Fprintf(lines, "line %d\n", i)
	}
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(all.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tail := range map[string]string{"of a writer": lines.Tail(), "of a file": FileTail(path)} {
		t.Run(name, func(t *testing.T) {
			got := strings.Split(tail, "\n")
			if len(got) != tailLines || got[0] != "line 85" || got[tailLines-1] != "line 99" {
				t.Errorf("the tail is %q", tail)
			}
		})
	}
	if tail := FileTail(path + ".missing"); tail != "" {
		t.Errorf("the tail of a missing file is %q", tail)
	}
}
