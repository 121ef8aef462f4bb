package install

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"millwright/dev/devtest"
	"millwright/dev/process"
)

var inMachine = flag.Bool("machine", false, "boot a machine with the systemd units, as make systemd-test does")

// Installs and uses the systemd units with the commands of docs/running.md.
func TestTheUnitsRun(t *testing.T) {
	if !*inMachine {
		t.Skip("make systemd-test runs it")
	}
	w := &walk{t: t}
	m := &machine{t: t, root: filepath.Join(t.TempDir(), "root")}
	m.shell = m.inside
	t.Cleanup(m.end)
	w.step("making the machine", m.make)
	w.step("boot", m.boot)
	w.step("Postgres and Temporal", m.startServers)
	w.step("install", func(t *testing.T) {
		for _, command := range []string{`^install -m 755 bin/millwright`, `^install -d -m 700 /etc/millwright`} {
			m.sh(t, documented(t, command))
		}
		m.sh(t, `deploy/make-secrets; cd deploy/secrets; sed -i s/@postgres:/@127.0.0.1:/ *database_url
			install -m 600 *database_url *_keys /etc/millwright/secrets`)
		m.write(t, "etc/millwright/settings.env",
			"TEMPORAL_ADDRESS=temporal.internal:7233\nTEMPORAL_NAMESPACE=millwright\nWEBHOOK_ALLOW_HTTP=true\nWEBHOOK_ALLOW_NETWORKS=127.0.0.0/8\n", 0o600)
		sql := documented(t, `^CREATE ROLE millwright_owner`)
		secrets := secretFiles(t, filepath.Join(m.root, "root/millwright"))
		for _, role := range []string{"millwright_owner", "millwright"} {
			sql = strings.Replace(sql, "…", strings.TrimSpace(secrets[role+"_password"]), 1)
		}
		m.sh(t, "psql --quiet --dbname "+superuser+" <<'SQL'\n"+sql+"\nSQL")
		m.write(t, "usr/local/bin/operate", "#!/bin/sh\nexec "+documented(t, `^systemd-run `), 0o755)
		m.sh(t, m.millwright(documented(t, `^millwright namespace --retention`)))
		m.sh(t, documented(t, `^install -m 644 deploy/systemd/\*`))
	})
	w.step("start without a schema", func(t *testing.T) {
		m.sh(t, `mv /etc/millwright/secrets/migrate_database_url /root`)
		if said, err := m.try(t, documented(t, `^systemctl daemon-reload && systemctl enable --now millwright-migrate`)); err == nil {
			t.Errorf("the migration has a URL:\n%s", said)
		}
		await(t, func() error { // more often than systemd's default limit of starts
			return m.expect(t, `systemctl show --property NRestarts --value millwright-api`, "6")
		})
		m.sh(t, `mv /root/migrate_database_url /etc/millwright/secrets`)
	})
	w.step("start", func(t *testing.T) {
		m.awaitReady(t) // the migration starts again by itself
		await(t, func() error { return m.expect(t, `operate health worker`, "healthy") })
		if said, err := m.try(t, `timeout 2 getent hosts example.com`); err == nil || !strings.Contains(err.Error(), "124") {
			t.Errorf("DNS responds: %q, %v", said, err)
		}
	})

	var imported struct {
		IDs          map[string]string      `json:"ids"`
		Integrations map[string]credentials `json:"integrations"`
	}
	w.step("import", func(t *testing.T) {
		m.sh(t, `cp deploy/example-organization.yaml acme.yaml`)
		m.json(t, &imported, m.millwright(documented(t, `^millwright import acme\.yaml$`)))
	})
	w.step("webhook address", func(t *testing.T) {
		var created struct {
			Secret string `json:"secret"`
		}
		m.json(t, &created, `operate webhooks create --integration `+imported.IDs["erp"]+` --url http://127.0.0.1:9090/ --event work_order.created --json`)
		m.sh(t, `printf %s `+created.Secret+` >receiver_secret`)
	})
	create := func(t *testing.T) { m.create(t, imported.Integrations["erp"], imported.IDs["ahu1"]) }
	w.step("call and delivery", create)
	w.step("kill of worker and API server", func(t *testing.T) {
		before := m.sh(t, mainPIDs)
		m.sh(t, `systemctl kill --signal KILL millwright-api millwright-worker`)
		await(t, func() error {
			if after := m.sh(t, mainPIDs); after == before || strings.Contains(after, "=0\n") {
				return fmt.Errorf("the processes are %s", after)
			}
			return nil
		})
		m.awaitReady(t)
		create(t)
	})
	w.step("upgrade", func(t *testing.T) {
		m.sh(t, documented(t, `^install -m 755 bin/millwright`))
		m.sh(t, documented(t, `^systemctl restart millwright-migrate$`))
		m.sh(t, documented(t, `^systemctl restart millwright-worker millwright-api$`))
		m.awaitReady(t)
		create(t)
	})
	w.step("backup", func(t *testing.T) {
		m.sh(t, documented(t, `millwright-backup\.timer$`))
		m.sh(t, `systemctl start millwright-backup.service`)
		m.sh(t, `pg_restore --list /var/lib/millwright-backup/*.dump`)
		if err := m.expect(t, `psql --tuples-only --no-align --dbname `+superuser+`/millwright --command "SELECT done_at > now() - interval '1 minute' FROM last_backup"`, "t"); err != nil {
			t.Error(err)
		}
	})
	w.step("reboot", func(t *testing.T) {
		_, _ = m.try(t, `systemctl reboot`) // ends the shell
		await(t, func() error {
			if m.init.Running() {
				return errors.New("the machine does not shut down")
			}
			return nil
		})
		m.boot(t) // systemd-nspawn does not
		m.awaitReady(t)
		if err := m.expect(t, `systemctl is-active millwright-backup.timer`, "active"); err != nil {
			t.Error(err)
		}
		create(t)
	})
	w.step("stop", func(t *testing.T) {
		m.sh(t, `systemctl stop millwright-api millwright-worker`)
		for _, unit := range []string{"api", "worker"} {
			if err := m.expect(t, `systemctl show --property Result,ExecMainStatus millwright-`+unit, "Result=success\nExecMainStatus=0"); err != nil {
				t.Error(err)
			}
		}
	})
	system := m.sh(t, `. /etc/os-release; echo "$PRETTY_NAME, $(systemctl --version | head -n 1)"`)
	w.write("A run in a machine with systemd", "`make systemd-test`, which runs the systemd commands", system,
		"servers | "+strings.TrimSpace(m.sh(t, `psql --version`))+", devstack's Temporal",
		"exposure (`systemd-analyze security`) | "+strings.TrimSpace(m.sh(t, `systemd-analyze security --no-pager | awk '/millwright/ {printf "%s %s  ", $1, $2}'`)))
}

const (
	superuser = `postgres://postgres:superuser@127.0.0.1`
	mainPIDs  = `systemctl show --property MainPID millwright-api millwright-worker`
)

// machine is Debian with systemd in a container of systemd-nspawn, without other network than its own loopback.
type machine struct {
	shell
	t    *testing.T
	root string
	init *process.Process
}

// make makes its root file system, with a copy of the checkout in /root/millwright.
func (m *machine) make(t *testing.T) {
	const packages = `systemd-sysv,dbus,postgresql-15,curl,ca-certificates`
	here(".").sh(t, `mmdebstrap --quiet --variant=minbase --include=`+packages+` bookworm '`+m.root+`'`)
	checkout := filepath.Join(m.root, "root/millwright")
	copyDeploy(t, checkout)
	here(checkout).sh(t, `echo millwright >../../etc/hostname; install -D -t bin '`+millwright+`'`)
	here(repository).sh(t, `install -t '`+checkout+`/bin' bin/devstack`)
}

// boot starts the machine.
func (m *machine) boot(t *testing.T) {
	cmd := exec.Command("systemd-nspawn", "--directory="+m.root, "--machine=millwright", "--boot", "--register=no", "--keep-unit", "--private-network")
	var err error
	if m.init, err = process.Start(cmd, process.Options{Name: "the machine", DeathSignal: syscall.SIGTERM}); err != nil {
		t.Fatal(err)
	}
	await(t, func() error { return m.expect(t, `systemctl is-system-running`, "running") })
}

// end shows what a failed test left, and stops the machine.
func (m *machine) end() {
	if m.init == nil {
		return
	}
	if m.t.Failed() {
		said, _ := m.try(m.t, `systemctl --failed --no-pager; journalctl --no-pager --lines 20 --unit 'millwright*'`)
		m.t.Log(said)
	}
	m.init.Stop()
}

// inside is a shell of root in the checkout, in the machine.
func (m *machine) inside(ctx context.Context) *exec.Cmd {
	return exec.CommandContext(ctx, "nsenter", "--target", m.leader(), "--all", "--",
		"env", "--ignore-environment", "--chdir=/root/millwright", "HOME=/root", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "bash")
}

// leader is the process id of the machine's init, "0" without one.
func (m *machine) leader() string {
	id := strconv.Itoa(m.init.PID())
	children, _ := os.ReadFile(filepath.Join("/proc", id, "task", id, "children"))
	first, _, _ := strings.Cut(string(children)+" 0", " ")
	return first
}

// startServers starts what the units need and the receiver of webhooks, now and at each boot. DNS is silent.
func (m *machine) startServers(t *testing.T) {
	m.sh(t, `su postgres -c "psql --quiet --command \"ALTER ROLE postgres PASSWORD 'superuser'\""`)
	const restarted = "[Unit]\nStartLimitIntervalSec=0\n[Install]\nWantedBy=multi-user.target\n[Service]\nRestart=always\nRestartSec=1\n"
	for path, content := range map[string]string{
		"etc/systemd/system/temporal.service": restarted + "Environment=DATABASE_URL=" + superuser + "/postgres\n" +
			"ExecStart=/root/millwright/bin/devstack temporal --port 7233\n",
		"etc/systemd/system/receiver.service": restarted + "ExecStart=/usr/local/bin/millwright listen --body --secret-file /root/millwright/receiver_secret\n",
		// A DNS server that never responds, as where a firewall drops its packets: systemd has the socket, and no one reads it.
		"etc/systemd/system/dns.socket":  "[Socket]\nListenDatagram=127.0.0.1:53\n[Install]\nWantedBy=sockets.target\n",
		"etc/systemd/system/dns.service": "[Service]\nExecStart=sleep infinity\n",
		"etc/resolv.conf":                "nameserver 127.0.0.1\n",
		"etc/hosts":                      "127.0.0.1 localhost temporal.internal\n",
	} {
		m.write(t, path, content, 0o644)
	}
	m.sh(t, `systemctl enable --quiet --now temporal.service receiver.service dns.socket`)
	await(t, func() error { return m.expect(t, `journalctl --unit temporal --output cat --grep '^ready$'`, "ready") })
}

// write writes a file of the machine. The path is below its root.
func (m *machine) write(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	devtest.Must(t, os.WriteFile(filepath.Join(m.root, path), []byte(content), mode))
}

// millwright is running.md's command with the settings of the units.
func (m *machine) millwright(command string) string {
	return strings.Replace(command, "millwright", "operate", 1)
}

// expect returns an error unless the commands print this.
func (m *machine) expect(t *testing.T, commands, want string) error {
	t.Helper()
	said, err := m.try(t, commands)
	if err == nil && strings.TrimSpace(said) != want {
		err = errors.New("want " + want)
	}
	if err != nil {
		return fmt.Errorf("%s: %w; it prints %q", commands, err, said)
	}
	return nil
}

func (m *machine) awaitReady(t *testing.T) {
	t.Helper()
	m.awaitStatus(t, `127.0.0.1:8080/readyz?temporal=1`, "200")
}

func (m *machine) awaitStatus(t *testing.T, url, status string) {
	t.Helper()
	await(t, func() error {
		return m.expect(t, `curl --silent --output /dev/null --write-out '%{http_code}' '`+url+`'`, status)
	})
}

// create creates a work order and waits until the receiver has verified its event.
func (m *machine) create(t *testing.T, as credentials, place string) {
	t.Helper()
	m.awaitStatus(t, `127.0.0.1:9090`, "400") // the receiver runs
	const post = `curl --silent --show-error --fail 127.0.0.1:8080/v1`
	var token struct {
		AccessToken string `json:"access_token"`
	}
	m.json(t, &token, post+`/oauth/token --data grant_type=client_credentials --data client_id=`+as.ClientID+` --data client_secret=`+as.ClientSecret)
	var record struct {
		ID string `json:"id"`
	}
	m.json(t, &record, post+`/work-orders --header 'Authorization: Bearer `+token.AccessToken+`' --json '{"title": "Replace the filter", "inventory_id": "`+place+`"}'`)
	await(t, func() error {
		said, err := m.try(t, `journalctl --unit receiver --boot --output cat | grep `+record.ID)
		if err != nil {
			return fmt.Errorf("the receiver has no work_order.created of %s: %q, %w", record.ID, said, err)
		}
		return nil
	})
}
