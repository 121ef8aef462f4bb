package stack

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"millwright/dev/devtest"
)

func TestStateIsKeptAndPrivate(t *testing.T) {
	dir := t.TempDir()
	first, err := loadState(dir)
	devtest.Must(t, err)
	for _, key := range []string{first.TokenSigningKeys, first.SecretSealingKeys} {
		text, ok := strings.CutPrefix(key, "dev1:")
		if raw, err := base64.StdEncoding.DecodeString(text); !ok || err != nil || len(raw) != 32 {
			t.Errorf("the key %q is not of the form dev1:BASE64 with 32 bytes", key)
		}
	}
	first.PostgresPort = 25000
	first.Demo["private"] = credentials{"id", "secret", "hook", someone("idn_1", "password"), false}
	devtest.Must(t, first.save(dir))
	second, err := loadState(dir)
	if err != nil || !reflect.DeepEqual(first, second) {
		t.Errorf("loaded: %+v, %v; saved: %+v", second, err, first)
	}
	info, err := os.Stat(statePath(dir))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestTheClusterIsElsewhereBelowRootsHome(t *testing.T) {
	open := devtest.OpenDirectory(t)
	st := &state{}
	if root, err := st.clusterRoot(open); err != nil || root != filepath.Join(open, "postgres") {
		t.Errorf("the cluster is in %s, %v", root, err)
	}
	if os.Geteuid() != 0 {
		return // this user's clusters are its own
	}
	devtest.Must(t, os.Chmod(open, 0o700))
	root, err := st.clusterRoot(open)
	if err != nil || strings.HasPrefix(root, open) {
		t.Errorf("the cluster is in %s, which its user cannot enter (%v)", root, err)
	}
	if again, err := st.clusterRoot(open); err != nil || again != root {
		t.Errorf("the second call returned %s, %v; the first %s", again, err, root)
	}
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
