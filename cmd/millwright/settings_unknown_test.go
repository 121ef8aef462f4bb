package main

import (
	"slices"
	"strings"
	"testing"
)

// A misspelt setting stops the start and is named, instead of a default that no one notices.
func TestAMisspeltSettingIsNamed(t *testing.T) {
	setRequired(t)
	t.Setenv("WEBHOOK_RETRY_SCHEDUEL", "1m")
	if _, err := loadSettings(); err == nil || !strings.Contains(err.Error(), "WEBHOOK_RETRY_SCHEDUEL is no setting; is it WEBHOOK_RETRY_SCHEDULE?") {
		t.Errorf("loadSettings: %v", err)
	}
}

func TestUnknownSettings(t *testing.T) {
	misspelt, unknown := unknownSettings(slices.Values([]string{
		"PATH", "SHELL", "LOGNAME", "DATABASE_URL", "DATABASE_URL_FILE", "OTEL_TRACES_SAMPLER", "WEBHOOK_SECRET", "MILLWRIGHT_FAILPOINT_clock",
		"MILLWRIGHT_API_PORT", "MILLWRIGHT_API_SERVICE_HOST", "MILLWRIGHT_API_SERVICE_PORT_HTTP", "TEMPORAL_PORT_7233_TCP_ADDR", "TEMPORAL_PORT_7233_TCP",
		"SMTP_URLS", "MILLWRIGHT_ADRR", "TEMPORAL_NAMESPACE_FILE", "WEBHOOK_RETRIES",
	}))
	if want := []string{"MILLWRIGHT_ADRR is no setting; is it MILLWRIGHT_ADDR?", "SMTP_URLS is no setting; is it SMTP_URL?"}; !slices.Equal(misspelt, want) {
		t.Errorf("misspelt are %v, want %v", misspelt, want)
	}
	if want := []string{"TEMPORAL_NAMESPACE_FILE", "WEBHOOK_RETRIES"}; !slices.Equal(unknown, want) {
		t.Errorf("unknown are %v, want %v", unknown, want)
	}
}

func TestEdits(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "abc", 0}, {"abc", "", 3}, {"", "ab", 2}, {"schedule", "scheduel", 2}, {"kitten", "sitting", 3}} {
		if got := edits(test.a, test.b); got != test.want {
			t.Errorf("edits(%q, %q) = %d, want %d", test.a, test.b, got, test.want)
		}
	}
}

// A malformed setting's form is said: not only what the setting is.
func TestTheFormOfAMalformedSettingIsSaid(t *testing.T) {
	for name, test := range map[string]struct{ value, want string }{
		"CALL_TIMEOUT":           {"25", "a time such as 10s"},
		"WEBHOOK_RETRY_SCHEDULE": {"1m,x", "times such as 10s, separated by commas"},
		"MAX_CONNECTIONS":        {"many", "a number"},
		"WEBHOOK_ALLOW_HTTP":     {"maybe", "true or false"},
		"TRUSTED_PROXIES":        {"10.0.0.1", "networks such as 10.0.0.0/8, separated by commas"},
		"LOG_LEVEL":              {"LOUD", "DEBUG, INFO, WARN or ERROR"},
	} {
		t.Setenv(name, test.value)
		if _, err := loadSettings(); err == nil || !strings.Contains(err.Error(), name+" is malformed; it must be "+test.want) {
			t.Errorf("%s=%s: %v", name, test.value, err)
		}
		t.Setenv(name, "")
	}
}
