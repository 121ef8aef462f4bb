package main

import (
	"log/slog"
	"regexp"
	"strings"
	"testing"
)

func TestLogLinesSuitTheirReader(t *testing.T) {
	const (
		json     = `^{"time":"[^"]+","level":"WARN","msg":"it failed","error":"no\\nroute","n":2}\n$`
		plain    = `^\d\d:\d\d:\d\d\.\d{3} WRN it failed error="no\\nroute" n=2\n$`
		coloured = `^\x1b\[2m\d\d:\d\d:\d\d\.\d{3}\x1b\[0m .*WRN.* it failed .*error=.*"no\\nroute".*n=.*2\n$`
	)
	for _, test := range []struct {
		name, format string
		terminal     bool
		env          map[string]string
		want         string
	}{
		{"a file gets JSON", "auto", false, nil, json},
		{"a terminal gets text with colours", "auto", true, nil, coloured},
		{"NO_COLOR turns colours off", "auto", true, map[string]string{"NO_COLOR": "1"}, plain},
		{"text in a file has no colours", "text", false, nil, plain},
		{"the parent of a pipe asks for colours", "text", false, map[string]string{"CLICOLOR_FORCE": "1"}, coloured},
		{"a value of 0 does not ask", "text", false, map[string]string{"CLICOLOR_FORCE": "0"}, plain},
		{"NO_COLOR wins over CLICOLOR_FORCE", "text", false, map[string]string{"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, plain},
		{"JSON on a terminal", "json", true, nil, json},
	} {
		t.Run(test.name, func(t *testing.T) {
			var written strings.Builder
			s := settings{LogFormat: test.format, LogLevel: slog.LevelInfo}
			log := slog.New(s.logHandler(&written, test.terminal, func(name string) string { return test.env[name] }))
			log.Debug("not written")
			log.Warn("it failed", "error", "no\nroute", "n", 2)
			if !regexp.MustCompile(test.want).MatchString(written.String()) {
				t.Errorf("the line is %q, want %s", written.String(), test.want)
			}
		})
	}
}
