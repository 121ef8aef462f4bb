package receivers_test

import (
	"bufio"
	"io"
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
	ended   chan struct{} // closed when the program has closed its streams
}

func newTranscript() *transcript {
	return &transcript{changed: make(chan struct{}), ended: make(chan struct{})}
}

// read collects everything the program prints, line by line from each of its
// streams: in a single pipe, one stream's lines would cut the other's.
func (p *transcript) read(streams ...io.Reader) {
	var reading sync.WaitGroup
	for _, stream := range streams {
		reading.Go(func() {
			scanner := bufio.NewScanner(stream)
			for scanner.Scan() {
				p.add(scanner.Text())
			}
		})
	}
	reading.Wait()
	close(p.ended)
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
		case <-p.ended:
			// The last lines may have been added after find returned.
			if line, found, _ := p.find(text); found {
				return line
			}
			t.Fatalf("the program ended before it printed %q:\n%s", text, p.text())
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

func (p *transcript) awaitEnd(t *testing.T) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(lineTimeout):
		t.Error("the program did not end")
	}
}

func (p *transcript) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}
