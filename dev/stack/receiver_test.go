package stack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millwright/dev/devtest"
)

func TestTheDemosReceiverStopsAndStarts(t *testing.T) {
	self, err := os.Executable()
	devtest.Must(t, err)
	var terminal strings.Builder
	r := &runner{
		supervisor: &supervisor{out: &terminal}, cfg: &config{dir: t.TempDir()},
		opts: RunOptions{Millwright: self}, demo: credentials{WebhookSecret: "whsec_1"}, receiverPort: devtest.FreePorts(t, 1)[0],
	}
	devtest.Must(t, os.Mkdir(r.cfg.logs(), 0o700))
	devtest.Must(t, r.startReceiver())
	t.Cleanup(func() { r.stopReceiver() })
	for _, step := range []struct {
		line, says string
		runs       bool
	}{
		{"r", "has stopped; r and Enter starts it again", false},
		{" r ", "the demo's receiver runs\n", true},
		{"", "r and Enter stops it", true},
		{"r", "has stopped", false},
		{"", "not running; r and Enter starts it", false},
	} {
		terminal.Reset()
		if r.obey(step.line); r.receiverRuns() != step.runs || !strings.Contains(terminal.String(), step.says) {
			t.Errorf("after %q it runs: %t, the terminal says %q", step.line, r.receiverRuns(), terminal.String())
		}
	}
}

// checkReceiver checks that the demo's receiver ran, or that another program has its port.
func (c *checkout) checkReceiver(t *testing.T, output string) {
	t.Helper()
	if strings.Contains(output, fmt.Sprintf("port %d is taken by another program: the demo's receiver does not run", demoReceiverPort)) {
		return
	}
	if log, err := os.ReadFile(filepath.Join(c.dir, ".dev", "logs", "receiver.log")); string(log) != "receives with whsec_1\n" {
		t.Errorf("the receiver's log is %q (%v)", log, err)
	}
}
