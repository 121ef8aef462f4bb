package process

import (
	"bytes"
	"io"
	"os"
	"strings"
)

// tailLines is the number of a log's last lines that an error shows.
const tailLines = 15

// Lines returns a writer that calls each with every full line, so that the lines of several
// programs do not mix.
func Lines(each func(line string)) io.Writer { return &lines{each: each} }

type lines struct {
	each    func(line string)
	partial []byte
}

// Write never fails: a program must not stop because its output cannot be shown.
func (l *lines) Write(p []byte) (int, error) {
	l.partial = append(l.partial, p...)
	for {
		line, rest, found := bytes.Cut(l.partial, []byte("\n"))
		if !found {
			return len(p), nil
		}
		l.each(string(line))
		l.partial = rest
	}
}

// lossy is a writer that never fails, for the same reason.
type lossy struct{ io.Writer }

func (w lossy) Write(p []byte) (int, error) {
	_, _ = w.Writer.Write(p)
	return len(p), nil
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
