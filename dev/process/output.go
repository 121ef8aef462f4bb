package process

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync"
)

// tailLines is the number of a program's last lines that an error shows.
const tailLines = 15

// Lines splits a program's output into lines, so that the lines of several programs
// do not mix, and keeps the last ones.
type Lines struct {
	mu      sync.Mutex
	each    func(line string)
	partial []byte
	tail    []string
}

// NewLines returns a writer that calls each with every full line.
func NewLines(each func(line string)) *Lines {
	return &Lines{each: each}
}

// Prefixed returns a writer that puts the prefix before each line.
func Prefixed(w io.Writer, prefix string) *Lines {
	return NewLines(func(line string) {
		// The terminal is gone: there is nowhere to report the error.
		_, _ = io.WriteString(w, prefix+line+"\n")
	})
}

// Write implements io.Writer. It never fails: a program must not stop because its
// output cannot be shown.
func (l *Lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partial = append(l.partial, p...)
	for {
		line, rest, found := bytes.Cut(l.partial, []byte("\n"))
		if !found {
			return len(p), nil
		}
		l.line(string(line))
		l.partial = rest
	}
}

func (l *Lines) line(line string) {
	if l.tail = append(l.tail, line); len(l.tail) > tailLines {
		l.tail = l.tail[1:]
	}
	l.each(line)
}

// Tail returns the last lines written.
func (l *Lines) Tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.tail
	if len(l.partial) > 0 {
		lines = append(lines[:len(lines):len(lines)], string(l.partial))
	}
	return strings.Join(lines, "\n")
}

// FileTail returns the last lines of a log file, or "" if it cannot be read.
func FileTail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
