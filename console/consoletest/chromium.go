package consoletest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// chromium is a process of Chromium that all tabs of the test program share: starting one takes
// longer than most pages.
type chromium struct {
	mu sync.Mutex
	// users counts the tests that use it, and Run.
	users int
	// context is of its first tab, nil while it does not run; end ends it.
	context context.Context
	end     func()
}

var theChromium chromium

// Run runs the tests of a package and keeps Chromium from its first use until they end. Without
// it, as long as a test has a tab. It returns the exit status.
func Run(m *testing.M) int {
	theChromium.hold()
	defer theChromium.release()
	return m.Run()
}

// use returns the context of the process, which runs at least until the test ends.
func (c *chromium) use(t testing.TB) context.Context {
	t.Helper()
	c.hold()
	t.Cleanup(c.release)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.context == nil {
		if err := c.start(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	return c.context
}

func (c *chromium) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users++
}

func (c *chromium) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.users--; c.users == 0 && c.context != nil {
		_ = chromedp.Cancel(c.context) // ends the process, so that its directory can be removed
		c.end()
		c.context = nil
	}
}

func (c *chromium) start(ctx context.Context) error {
	path, err := findChromium()
	if err != nil {
		return err
	}
	directory, err := os.MkdirTemp("", "millwright-chromium-")
	if err != nil {
		return err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(directory),
		// Containers have no user namespaces and a small /dev/shm.
		chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true), chromedp.DisableGPU,
		// Scrolling that takes its time would move what a test is about to click.
		chromedp.Flag("force-prefers-reduced-motion", true),
		// Optimizing scripts takes longer than running them: each page runs axe-core just a few times.
		chromedp.Flag("js-flags", "--no-opt --no-maglev"),
		chromedp.WSURLReadTimeout(patience),
	)
	allocator, endAllocator := chromedp.NewExecAllocator(ctx, options...)
	ctx, end := chromedp.NewContext(allocator)
	c.end = func() {
		end()
		endAllocator()
		_ = os.RemoveAll(directory)
	}
	if err := chromedp.Do(ctx); err != nil {
		c.end()
		return fmt.Errorf("cannot start Chromium: %w", err)
	}
	c.context = ctx
	return nil
}

// findChromium returns the program. The error names the package to install.
func findChromium() (path string, err error) {
	if path = os.Getenv("CHROMIUM"); path != "" {
		return path, nil
	}
	// The shell, which has no windows, takes a third less of the processors.
	for _, name := range []string{"chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"} {
		if path, err = exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("this test needs Chromium: install it (Debian: apt-get install chromium-headless-shell), or set CHROMIUM to the path of its program")
}
