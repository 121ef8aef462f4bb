package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestASecretCanBeInAFile(t *testing.T) {
	t.Setenv("DATABASE_URL", "")
	t.Setenv("DATABASE_URL_FILE", writeFile(t, "postgres://mill:hunter2@db/mill\n"))
	t.Setenv("TOKEN_SIGNING_KEYS", "t1:one")
	t.Setenv("SECRET_SEALING_KEYS_FILE", writeFile(t, "s1:two"))
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

	printed, err := run(t, "config")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"(in " + os.Getenv("DATABASE_URL_FILE") + ")", "(set)", "DATABASE_URL, TEMPORAL_API_KEY, TOKEN_SIGNING_KEYS"} {
		if !strings.Contains(printed, want) {
			t.Errorf("config does not print %q:\n%s", want, printed)
		}
	}
	if strings.Contains(printed, "hunter2") || strings.Contains(printed, "t1:one") {
		t.Error("config prints a secret")
	}
}

func TestAnUnusableSecretFileIsNamed(t *testing.T) {
	t.Setenv("DATABASE_URL_FILE", filepath.Join(t.TempDir(), "missing"))
	t.Setenv("DATABASE_URL", "")
	t.Setenv("TOKEN_SIGNING_KEYS", "t1:hunter2")
	t.Setenv("TOKEN_SIGNING_KEYS_FILE", writeFile(t, "t1:hunter3"))
	t.Setenv("SECRET_SEALING_KEYS_FILE", writeFile(t, " \n"))
	t.Setenv("SECRET_SEALING_KEYS", "")
	t.Setenv("DATABASE_MAX_CONNECTIONS", "0")
	_, err := loadSettings()
	if err == nil {
		t.Fatal("loadSettings succeeds")
	}
	for _, want := range []string{
		"DATABASE_URL_FILE names a file that cannot be read",
		"TOKEN_SIGNING_KEYS and TOKEN_SIGNING_KEYS_FILE are both set",
		"SECRET_SEALING_KEYS_FILE names an empty file",
		"DATABASE_MAX_CONNECTIONS is malformed; it must be a number above 0",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
	for _, wrong := range []string{"hunter", "is not set", "unreadable"} {
		if strings.Contains(err.Error(), wrong) {
			t.Errorf("the error says %q:\n%v", wrong, err)
		}
	}
	if _, err := lookup("DATABASE_URL"); err == nil {
		t.Error("lookup succeeds without the file")
	}
}

func TestAnUnknownProxyIsWarnedOf(t *testing.T) {
	setRequired(t)
	for _, test := range []struct {
		url     string
		proxies string
		warns   bool
	}{
		{"https://api.example.com", "", true},
		{"https://api.example.com", "10.0.0.0/8", false},
		{"http://127.0.0.1:8080", "", false},
	} {
		t.Setenv("MILLWRIGHT_PUBLIC_URL", test.url)
		t.Setenv("TRUSTED_PROXIES", test.proxies) // compose sets it empty by default
		s, err := loadSettings()
		if err != nil {
			t.Fatal(err)
		}
		if warns := s.lacksProxies(); warns != test.warns {
			t.Errorf("%+v: it warns: %t", test, warns)
		}
	}
}
