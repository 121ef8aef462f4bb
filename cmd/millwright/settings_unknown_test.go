package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/service/servicetest"
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
		"SMTP_URLS", "MILLWRIGHT_ADRR", "SWEEP_INTERVL", "TEMPORAL_NAMESPACE_FILE", "WEBHOOK_RETRIES",
	}))
	if want := []string{"MILLWRIGHT_ADRR is no setting; is it MILLWRIGHT_ADDR?", "SMTP_URLS is no setting; is it SMTP_URL?", "SWEEP_INTERVL is no setting; is it SWEEP_INTERVAL?"}; !slices.Equal(misspelt, want) {
		t.Errorf("misspelt are %v, want %v", misspelt, want)
	}
	if want := []string{"TEMPORAL_NAMESPACE_FILE", "WEBHOOK_RETRIES"}; !slices.Equal(unknown, want) {
		t.Errorf("unknown are %v, want %v", unknown, want)
	}
}

// A malformed setting's form is said: not only what the setting is.
func TestTheFormOfAMalformedSettingIsSaid(t *testing.T) {
	setRequired(t)
	const positive, network, address, origin = "a time above 0", "networks such as 10.0.0.0/8, separated by commas", "host:port", "http:// or https:// and a host, without a path"
	for _, test := range []struct{ name, value, want string }{
		{"CALL_TIMEOUT", "25", "a time such as 10s"},
		{"WEBHOOK_RETRY_SCHEDULE", "1m,x", "times such as 10s, separated by commas"},
		{"WEBHOOK_RETRY_SCHEDULE", "1m,0s", "times above 0, separated by commas"},
		{"MAX_CONNECTIONS", "many", "a number"},
		{"ADDRESS_CALLS_PER_MINUTE", "-1", "a number above 0"},
		{"WORKER_RECORD_TASKS", "1", "another number"},
		{"WORKER_POLLERS", "1", "another number"},
		{"WEBHOOK_ALLOW_HTTP", "maybe", "true or false"},
		{"TRUSTED_PROXIES", "10.0.0.1", network},
		{"WEBHOOK_ALLOW_NETWORKS", "10.0.0.0/33", network},
		{"LOG_LEVEL", "LOUD", "DEBUG, INFO, WARN or ERROR"},
		{"LOG_FORMAT", "xml", "auto, text, json"},
		{"MILLWRIGHT_ADDR", "localhost", address},
		{"METRICS_ADDR", "localhost", address},
		{"TEMPORAL_ADDRESS", "no such thing", address},
		{"MILLWRIGHT_PUBLIC_URL", "https://api.example.com/v1", origin},
		{"MILLWRIGHT_PUBLIC_URL", "//api.example.com", origin},
		{"WEBHOOK_RESPONSE_TIMEOUT", "-1s", positive},
		{"WEBHOOK_RESPONSE_TIMEOUT", "31s", "at most 30s"},
		{"WEBHOOK_SHUTOFF_AFTER", "-72h", positive},
		{"WEBHOOK_IDLE_TIMEOUT", "-1s", positive},
		{"SWEEP_INTERVAL", "0s", positive},
		{"CELL", "eu_1", "1 to 16 lower-case letters and digits"},
	} {
		t.Setenv(test.name, test.value)
		if _, err := loadSettings(); err == nil || !strings.Contains(err.Error(), test.name+" is malformed; it must be "+test.want) {
			t.Errorf("%s=%s: %v", test.name, test.value, err)
		}
		t.Setenv(test.name, "")
	}
}

// A start that fails over a secret names its setting and shows nothing of it.
func TestSecretsAreInNoStartError(t *testing.T) {
	setRequired(t)
	for _, setting := range []string{
		"DATABASE_URL=hunter2", "DATABASE_URL=postgres://mill:hunter2@[::1/db", "DATABASE_URL=postgres://u:hunter2@h:port/db",
		"DATABASE_URL=postgres://u:hunter2%zz@h/db", "DATABASE_URL=host=h password='hunter2",
		"TOKEN_SIGNING_KEYS=t1:hunter2", "SECRET_SEALING_KEYS=s1:aHVudGVyMg==", "SMTP_URL=smtp://u:hunter2@h:port",
	} {
		t.Run(setting, func(t *testing.T) {
			name, value, _ := strings.Cut(setting, "=")
			t.Setenv("TOKEN_SIGNING_KEYS", servicetest.TokenKeys)
			t.Setenv("SECRET_SEALING_KEYS", servicetest.SealingKeys)
			t.Setenv(name, value)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			out, err := runWith(ctx, "worker")
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Fatalf("the error is %v", err)
			}
			for _, secret := range []string{"hunter2", "aHVudGVyMg"} {
				if strings.Contains(out+err.Error(), secret) {
					t.Errorf("it says %s, %v", out, err)
				}
			}
		})
	}
}
