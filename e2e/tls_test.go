package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// authority issues certificates for tests, in files.
type authority struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// file has its certificate.
	file string
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.file, _ = a.issue("authority", func(c *x509.Certificate) {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
	})
	return a
}

// issue makes a certificate of the name for servers and clients, signed by the authority,
// and returns its files. The first one is the authority's own.
func (a *authority) issue(name string, change func(*x509.Certificate)) (certFile, keyFile string) {
	a.t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	change(template)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	if a.cert == nil {
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			a.t.Fatal(err)
		}
		a.key = key
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	file := filepath.Join(a.dir, serial.String())
	for suffix, block := range map[string]*pem.Block{".crt": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(file+suffix, pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return file + ".crt", file + ".key"
}

func asIs(*x509.Certificate) {}

// local makes a server's certificate one for this machine's address.
func local(c *x509.Certificate) { c.DNSNames, c.IPAddresses = nil, []net.IP{net.IPv4(127, 0, 0, 1)} }

func expired(c *x509.Certificate) {
	local(c)
	c.NotBefore, c.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
}

// requireTLS has the server accept connections only with TLS and a certificate of the
// authority whose name is the role's, except to the database with which devstack checks
// that it runs. The server reads the certificates when it starts.
func (c *postgres) requireTLS(a *authority, certFile, keyFile string) {
	c.t.Helper()
	data := filepath.Join(c.root, "data")
	c.install(a.file, filepath.Join(data, "authority.crt"))
	c.install(certFile, filepath.Join(data, "server.crt"))
	c.install(keyFile, filepath.Join(data, "server.key"))
	if err := os.WriteFile(filepath.Join(data, "pg_hba.conf"), []byte("host postgres all 127.0.0.1/32 scram-sha-256\nhostssl all all 127.0.0.1/32 scram-sha-256 clientcert=verify-full\n"), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// install copies a file for the server, which may run as another user.
func (c *postgres) install(from, to string) {
	c.t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, content, 0o600)
	}
	owner, statErr := os.Stat(c.root + "/data")
	if err == nil && statErr == nil {
		if stat, ok := owner.Sys().(*syscall.Stat_t); ok {
			err = os.Chown(to, int(stat.Uid), int(stat.Gid))
		}
	}
	if err != nil || statErr != nil {
		c.t.Fatal(err, statErr)
	}
}

// The service connects to Postgres over TLS with a client certificate. Errors name the setting
// and the reason, and show no secret. TestTemporalIsReachedOverTLS is about Temporal.
func TestTLSToPostgres(t *testing.T) {
	t.Parallel()
	a, other := newAuthority(t), newAuthority(t)
	pg := newPostgres(t)
	server, err := url.Parse(pg.url)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := server.User.Password()
	pg.exec(`ALTER SYSTEM SET ssl = on`)
	pg.exec(`ALTER SYSTEM SET ssl_ca_file = 'authority.crt'`)
	// With TLS 1.3 the server rejects a client's certificate after the client's handshake: the
	// client may write into a closed connection before it reads why.
	pg.exec(`ALTER SYSTEM SET ssl_max_protocol_version = 'TLSv1.2'`)
	serve := func(change func(*x509.Certificate)) {
		certFile, keyFile := a.issue("server", change)
		pg.crash()
		pg.requireTLS(a, certFile, keyFile)
		pg.start()
	}
	serve(local)
	client, clientKey := a.issue(server.User.Username(), asIs)
	database := func(change func(url.Values)) string {
		query := url.Values{"sslmode": {"verify-full"}, "sslrootcert": {a.file}, "sslcert": {client}, "sslkey": {clientKey}}
		change(query)
		u := *server
		u.RawQuery = query.Encode()
		return u.String()
	}
	good := database(func(url.Values) {})

	r := newReceiver(t)
	h := newHarness(t, settings{"DATABASE_URL": good}, r)
	h.startWorker()
	h.startAPI(nil)
	awaitDelivery(t, r, h.integrator().create("Replace filter"))
	if n := h.count(`SELECT count(*) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE a.backend_type = 'client backend' AND NOT s.ssl`); n != 0 {
		t.Errorf("%d connections are not encrypted", n)
	}

	someone, someoneKey := a.issue("someone", asIs)
	fails := func(name, want, url string) {
		t.Helper()
		all := settings{"DATABASE_URL": url, "TOKEN_SIGNING_KEYS": h.settings["TOKEN_SIGNING_KEYS"], "SECRET_SEALING_KEYS": h.settings["SECRET_SEALING_KEYS"]}
		p := start(t, "millwright migrate", all.environ(), millwright, "migrate")
		if status := p.wait(startLimit); status == 0 {
			t.Errorf("%s: migrate succeeded", name)
		}
		said := p.log.String()
		if !strings.Contains(said, "DATABASE_URL") || !strings.Contains(said, want) || strings.Contains(said, password) {
			t.Errorf("%s: migrate said %q, want DATABASE_URL and %q, and no password", name, said, want)
		}
	}
	fails("another authority", "certificate signed by unknown authority", database(func(q url.Values) { q.Set("sslrootcert", other.file) }))
	fails("another role's certificate", "authentication failed", database(func(q url.Values) { q.Set("sslcert", someone); q.Set("sslkey", someoneKey) }))
	fails("no TLS", "no encryption", database(func(q url.Values) { q.Set("sslmode", "disable"); q.Del("sslcert"); q.Del("sslkey") }))
	fails("a missing file", "no such file", database(func(q url.Values) { q.Set("sslrootcert", "/nothing.crt") }))
	serve(asIs)
	fails("a certificate for another name", "127.0.0.1", good)
	serve(expired)
	fails("an expired certificate", "expired", good)
	serve(local) // renewed: connections come back without a restart
	awaitDelivery(t, r, createEventually(t, h))
}

// createEventually creates a work order once the database is back.
func createEventually(t testing.TB, h *harness) (id string) {
	t.Helper()
	i := h.integrator()
	eventually(t, recoveryLimit, "a work order is created", func() bool {
		response, err := i.post("Replace filter again", "again")
		if err == nil && response.status == 201 {
			id = idOf(t, response.body)
		}
		return id != ""
	})
	return id
}
