package service_test

import (
	"strings"
	"testing"

	"millwright/service"
	"millwright/service/servicetest"
)

func TestAnOlderProgramRunsOnANewerSchema(t *testing.T) {
	f := servicetest.New(t)
	newest := servicetest.Value[int64](f, `SELECT max(version_id) FROM goose_db_version`)
	f.Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES ($1, true)`, newest+1)
	if err := f.CheckSchema(t.Context()); err != nil {
		t.Errorf("with one migration more: %v", err)
	}
	f.Exec(`DELETE FROM goose_db_version WHERE version_id >= $1`, newest)
	if err := f.CheckSchema(t.Context()); err == nil || !strings.Contains(err.Error(), "`millwright migrate`") {
		t.Errorf("with one migration less: %v", err)
	}
}

func TestPoolSettings(t *testing.T) {
	url := servicetest.Database(t)
	for _, test := range []struct {
		url  string
		set  int
		want int32
	}{
		{url, 0, service.DefaultMaxConnections},
		{url, 3, 3},
		{url, 40, 40},
		{withParameter(url, "pool_max_conns=7"), 5, 5}, // MaxConnections overrides the URL
	} {
		pool, err := service.Pool{Application: "a test", MaxConnections: test.set}.Connect(t.Context(), test.url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		if got := pool.Config().MaxConns; got != test.want {
			t.Errorf("with %d the pool has %d connections, want %d", test.set, got, test.want)
		}
		var application string
		if err := pool.QueryRow(t.Context(), `SELECT current_setting('application_name')`).Scan(&application); err != nil || application != "a test" {
			t.Errorf("Postgres knows it as %q, %v", application, err)
		}
	}
	if _, err := (service.Pool{}).Connect(t.Context(), "postgres://mill:hunter2@[::1/db"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a malformed URL: %v", err)
	}
}

func withParameter(url, parameter string) string {
	if strings.Contains(url, "?") {
		return url + "&" + parameter
	}
	return url + "?" + parameter
}
