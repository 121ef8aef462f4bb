package receivers_test

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// lineTimeout limits the time until a line appears on a busy machine.
const lineTimeout = time.Minute

// transcript collects what a program prints.
type transcript struct {
	mu      sync.Mutex
	lines   []string
	next    int           // the first line that await has not seen
	changed chan struct{} // closed when a line is added
}

func newTranscript() *transcript { return &transcript{changed: make(chan struct{})} }

// stream is one of the program's streams: in a single one, their lines would cut each other's.
type stream struct {
	to   *transcript
	rest string // the beginning of a line
}

func (s *stream) Write(text []byte) (int, error) {
	lines := strings.Split(s.rest+string(text), "\n")
	s.rest = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		s.to.add(line)
	}
	return len(text), nil
}

func (p *transcript) add(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, line)
	close(p.changed)
	p.changed = make(chan struct{})
}

// await returns the next line that contains the text.
func (p *transcript) await(t *testing.T, text string) string {
	t.Helper()
	timeout := time.NewTimer(lineTimeout)
	defer timeout.Stop()
	for {
		line, found, changed := p.find(text)
		if found {
			return line
		}
		select {
		case <-changed:
		case <-timeout.C:
			t.Fatalf("the program did not print %q:\n%s", text, p.text())
		}
	}
}

func (p *transcript) find(text string) (line string, found bool, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.next < len(p.lines) {
		line = p.lines[p.next]
		p.next++
		if strings.Contains(line, text) {
			return line, true, nil
		}
	}
	return "", false, p.changed
}

func (p *transcript) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// must fails the test if there is an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
