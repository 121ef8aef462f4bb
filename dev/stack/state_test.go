package stack

import (
	"encoding/base64"
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestStateIsKeptAndPrivate(t *testing.T) {
	dir := t.TempDir()
	first, isNew, err := loadState(dir)
	if err != nil || !isNew {
		t.Fatal(isNew, err)
	}
	for _, key := range []string{first.TokenSigningKeys, first.SecretSealingKeys} {
		text, ok := strings.CutPrefix(key, "dev1:")
		if raw, err := base64.StdEncoding.DecodeString(text); !ok || err != nil || len(raw) != 32 {
			t.Errorf("the key %q is not of the form dev1:BASE64 with 32 bytes", key)
		}
	}
	first.PostgresPort = 25000
	first.Demo["private"] = credentials{"id", "secret", "hook", someone("idn_1", "password"), false}
	if err := first.save(dir); err != nil {
		t.Fatal(err)
	}
	second, isNew, err := loadState(dir)
	if err != nil || isNew || !reflect.DeepEqual(first, second) {
		t.Errorf("loaded: %+v, new %t, %v; saved: %+v", second, isNew, err, first)
	}
	info, err := os.Stat(statePath(dir))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestOnlyOneStackUsesADirectory(t *testing.T) {
	dir := t.TempDir()
	first, err := lockDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	if first.afterCrash {
		t.Error("a new directory counts as one after a crash")
	}
	_, err = lockDirectory(dir)
	if err == nil || !strings.Contains(err.Error(), "a stack is already running in "+dir+" (process ") {
		t.Errorf("the second lock: %v", err)
	}
	// The kernel releases the lock of a killed process, and the file keeps its number.
	first.file.Close()
	crashed, err := lockDirectory(dir)
	if err != nil || !crashed.afterCrash {
		t.Fatalf("after a crash: %+v, %v", crashed, err)
	}
	crashed.release()
	last, err := lockDirectory(dir)
	if err != nil || last.afterCrash {
		t.Errorf("after an orderly end: %+v, %v", last, err)
	}
	last.release()
}

// someone is the demo's administrator.
func someone(id, password string) map[string]signIn {
	return map[string]signIn{"margaret_ellison": {id, password}}
}

func TestDemoCredentialsAreMerged(t *testing.T) {
	known := credentials{"id", "secret", "hook", someone("idn_1", "password"), false}
	for name, c := range map[string]struct {
		before credentials
		output string
		want   credentials
	}{
		"created": {
			credentials{},
			`{"ids":{"margaret_ellison":"idn_1"},"integrations":{"erp":{"client_id":"id","client_secret":"secret","webhooks":{"erp_hook":{"secret":"hook"}}}}}`,
			credentials{"id", "secret", "hook", someone("idn_1", ""), false},
		},
		"imported again, without secrets": {known, `{"integrations":{"erp":{"client_id":"id"}}}`, known},
		"only the webhook is new": {
			known,
			`{"integrations":{"erp":{"client_id":"id","webhooks":{"erp_hook":{"secret":"new"}}}}}`,
			credentials{"id", "secret", "new", someone("idn_1", "password"), false},
		},
		"another integration, whose secret is unknown": {
			known, `{"integrations":{"erp":{"client_id":"other"}}}`, credentials{"other", "", "", someone("idn_1", "password"), false},
		},
		"another person, who has no password yet": {known, `{"ids":{"margaret_ellison":"idn_2"}}`, credentials{"id", "secret", "hook", someone("idn_2", ""), false}},
		"a file without the integration":          {known, `{"integrations":{}}`, known},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.before.merge([]byte(c.output))
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("merged: %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
	if _, err := known.merge([]byte("nonsense")); err == nil {
		t.Error("nonsense is accepted as output")
	}
}
