package main

import (
	"io"
	"log/slog"
	"os"

	"github.com/lmittmann/tint"
	"github.com/mattn/go-isatty"

	"millwright/telemetry"
)

// The values of LOG_FORMAT.
const (
	logAuto = "auto"
	logText = "text"
	logJSON = "json"
)

var logFormats = []string{logAuto, logText, logJSON}

// logger writes to standard error in the form of LOG_FORMAT.
func (s settings) logger() *slog.Logger {
	terminal := isatty.IsTerminal(os.Stderr.Fd())
	return slog.New(telemetry.LogHandler(s.logHandler(os.Stderr, terminal, os.Getenv)))
}

// logHandler writes JSON for programs, or for people lines of time, level, message and
// key=value. Colours follow NO_COLOR (no-color.org) and CLICOLOR_FORCE (bixense.com/clicolors),
// which the parent of a process sets whose pipe ends in a terminal.
func (s settings) logHandler(w io.Writer, terminal bool, env func(string) string) slog.Handler {
	if s.LogFormat == logJSON || s.LogFormat == logAuto && !terminal {
		return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: s.LogLevel})
	}
	forced := env("CLICOLOR_FORCE") != "" && env("CLICOLOR_FORCE") != "0"
	return tint.NewTextHandler(w, &tint.Options{
		Level: s.LogLevel, TimeFormat: "15:04:05.000", ReplaceAttr: inUTC,
		NoColor: env("NO_COLOR") != "" || !terminal && !forced,
	})
}

// inUTC turns the times of lines into UTC, which records and the Temporal UI show too.
func inUTC(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindTime {
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	}
	return a
}
