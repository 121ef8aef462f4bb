package consoletest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"image"
	"image/color"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// axe-core is the released file.
func TestAxeIsPinned(t *testing.T) {
	sums, err := os.ReadFile("testdata/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	version, err := os.ReadFile("testdata/VERSION")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(axe))
	if string(sums) != hex.EncodeToString(sum[:])+"  axe.min.js\n" {
		t.Errorf("the checksum is %x, not that of SHA256SUMS", sum)
	}
	if !strings.Contains(axe, strings.Replace(strings.TrimSpace(string(version)), "axe-core ", "axe v", 1)) {
		t.Errorf("the script is not version %q", version)
	}
}

// recorder keeps what a check finds.
type recorder struct {
	testing.TB
	found []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.found = append(r.found, fmt.Sprintf(format, args...))
}

// A check finds what is wrong only at one width, only in one theme, or only while the page loads.
func TestCheckFindsProblems(t *testing.T) {
	t.Parallel()
	const differ = " px: the themes differ"
	for name, page := range map[string]struct {
		style, body string
		// want is in each finding of Check, and wantWidth in each of CheckWidth.
		want, wantWidth []string
	}{
		"wide":          {"@media (max-width: 350px) { p { width: 400px } }", "", []string{"light, 320 px: the page is 408 px wide", "dark, 320 px: the page is 408 px wide"}, []string{"320 px: the page is 408 px wide"}},
		"pale":          {"@media (prefers-color-scheme: dark) { p { color: #333 } }", "", []string{"dark, 1280 px: axe", "dark, 320 px: axe"}, nil},
		"large":         {"@media (prefers-color-scheme: dark) { p { font-size: 30px } }", "", []string{"1280" + differ, "320" + differ}, nil},
		"no label":      {"@media (min-width: 350px) { input { display: none } }", "<input>", []string{"light, 320 px: axe"}, nil},
		"script fails":  {"", "<script>nothing()</script>", []string{"the browser reports: Uncaught"}, []string{"the browser reports: Uncaught"}},
		"policy broken": {"", `<img src="http://127.0.0.1:9/x" alt="">`, []string{"the browser reports: Loading the image"}, []string{"the browser reports: Loading the image"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				w.Header().Set("Content-Security-Policy", "img-src 'self' data:")
				_, _ = io.WriteString(w, `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><link rel="icon" href="data:,"><title>Page</title>
					<style>:root { color-scheme: light dark } body { background: Canvas; color: CanvasText }`+page.style+`</style><main><p>Text</p>`+page.body+`</main>`)
			}))
			t.Cleanup(server.Close)
			b := Open(t, server.URL, true)
			wantFound := func(check func(string), want []string) {
				t.Helper()
				b.Open("/")
				r := &recorder{TB: t}
				b.t = r
				check(name)
				b.t = t
				for i, found := range r.found {
					if i >= len(want) || !strings.Contains(found, want[i]) {
						t.Errorf("finds %q", found)
					}
				}
				if len(r.found) < len(want) {
					t.Errorf("finds only %q", r.found)
				}
			}
			wantFound(b.Check, page.want)
			wantFound(func(name string) { b.CheckWidth(name) }, page.wantWidth)
		})
	}
}

// A picture with few colors keeps a color that few pixels have.
func TestPicturesKeepRareColors(t *testing.T) {
	t.Parallel()
	shown, rare := image.NewRGBA(image.Rect(0, 0, 256, 20)), color.RGBA{0x6b, 0x3f, 0xa0, 0xff}
	for x := range 256 {
		for y := range 20 {
			shown.Set(x, y, color.Gray{uint8(x)})
		}
	}
	shown.Set(7, 3, rare)
	shown.Set(8, 3, rare)
	drawn := paletted(shown, 10)
	if got := drawn.At(7, 3); got != rare || len(drawn.Palette) != pictureColors || drawn.Bounds().Dy() != 10 {
		t.Errorf("the rare color is drawn as %v, with %d colors, %d px high", got, len(drawn.Palette), drawn.Bounds().Dy())
	}
}
