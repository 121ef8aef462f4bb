package consoletest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Without a browser, tests fail with an error that names the package to install.
func TestWithoutChromium(t *testing.T) {
	t.Setenv("CHROMIUM", "")
	t.Setenv("PATH", t.TempDir())
	if _, err := findChromium(); err == nil || !strings.Contains(err.Error(), "apt-get install chromium") {
		t.Errorf("without Chromium: %v", err)
	}
}

// What a browser should show is waited for: here it appears thirty frames after the page.
func TestTextsAreWaitedFor(t *testing.T) {
	t.Parallel()
	shown := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/later" {
			<-shown
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<main>Before <b></b></main><script>
			const frame = left => left ? requestAnimationFrame(() => frame(left - 1)) : document.querySelector("main").innerHTML = "After <b>bold</b>"
			fetch("/later").then(() => frame(30))
		</script>`)
	}))
	t.Cleanup(server.Close)
	b := Open(t, server.URL, true)
	b.Open("/")
	b.WantText("Before")
	close(shown)
	if text := b.Text("b"); text != "bold" {
		t.Errorf("the text is %q", text)
	}
	b.WantText("After")
	b.WantNoText("Before")
}
