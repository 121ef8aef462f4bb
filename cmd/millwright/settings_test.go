package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// file writes a file for the test and returns its path.
func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestASecretMayStandInAFile(t *testing.T) {
	t.Setenv("DATABASE_URL", "")
	t.Setenv("DATABASE_URL_FILE", file(t, "postgres://mill:hunter2@db/mill\n"))
	t.Setenv("TOKEN_SIGNING_KEYS", "t1:one")
	t.Setenv("SECRET_SEALING_KEYS_FILE", file(t, "s1:two"))
	s, err := loadSettings()
	if err != nil {
		t.Fatal(err)
	}
	if s.DatabaseURL != "postgres://mill:hunter2@db/mill" || s.TokenKeys != "t1:one" || s.SealingKeys != "s1:two" {
		t.Errorf("%q, %q, %q", s.DatabaseURL, s.TokenKeys, s.SealingKeys)
	}
	if pool := s.pool("test"); pool.MaxConnections != 16 || pool.Application != "test" {
		t.Errorf("the pool is %+v", pool)
	}

	var printed bytes.Buffer
	cmd := configCommand()
	cmd.SetOut(&printed)
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"(in " + os.Getenv("DATABASE_URL_FILE") + ")", "(set)", "DATABASE_URL, TEMPORAL_API_KEY, TOKEN_SIGNING_KEYS"} {
		if !strings.Contains(printed.String(), want) {
			t.Errorf("config does not print %q:\n%s", want, printed.String())
		}
	}
	if strings.Contains(printed.String(), "hunter2") || strings.Contains(printed.String(), "t1:one") {
		t.Error("config prints a secret")
	}
}

func TestASecretsFileThatWillNotDoIsNamed(t *testing.T) {
	t.Setenv("DATABASE_URL_FILE", filepath.Join(t.TempDir(), "missing"))
	t.Setenv("DATABASE_URL", "")
	t.Setenv("TOKEN_SIGNING_KEYS", "t1:hunter2")
	t.Setenv("TOKEN_SIGNING_KEYS_FILE", file(t, "t1:hunter3"))
	t.Setenv("SECRET_SEALING_KEYS_FILE", file(t, " \n"))
	t.Setenv("SECRET_SEALING_KEYS", "")
	t.Setenv("DATABASE_MAX_CONNECTIONS", "0")
	_, err := loadSettings()
	if err == nil {
		t.Fatal("all of it passes")
	}
	for _, want := range []string{
		"DATABASE_URL_FILE names a file that cannot be read",
		"TOKEN_SIGNING_KEYS and TOKEN_SIGNING_KEYS_FILE are both set",
		"SECRET_SEALING_KEYS_FILE names a file with nothing in it",
		"DATABASE_MAX_CONNECTIONS is malformed: it is a number above 0",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("it does not say %q:\n%v", want, err)
		}
	}
	for _, wrong := range []string{"hunter", "is not set", "unreadable"} {
		if strings.Contains(err.Error(), wrong) {
			t.Errorf("it says %q:\n%v", wrong, err)
		}
	}
	if _, err := lookup("DATABASE_URL"); err == nil {
		t.Error("migrate would go on without its file")
	}
}
