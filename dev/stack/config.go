package stack

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"millwright/dev/process"
)

// port is a port of the stack, its purpose, and the variable that chooses another.
type port struct {
	number   int
	purpose  string
	variable string
}

func (p *port) address() string { return process.Address(p.number) }

// config is what the environment sets for `devstack run`.
type config struct {
	dir string // absolute
	api port
	// apiAddress is the address at which clients reach the API server.
	apiAddress    string
	apiMetrics    port
	workerMetrics port
	temporal      port
	temporalUI    port
	// ownTemporal reports whether the stack runs Temporal itself.
	ownTemporal bool
}

// ports returns the ports that the stack will listen on.
func (c *config) ports() []*port {
	ports := []*port{&c.api, &c.apiMetrics, &c.workerMetrics}
	if c.ownTemporal {
		ports = append(ports, &c.temporal, &c.temporalUI)
	}
	return ports
}

// devDir returns the directory for the stack's data.
func devDir(variable string) (string, error) {
	if variable == "" {
		variable = ".dev"
	}
	dir, err := filepath.Abs(variable)
	if err != nil {
		return "", fmt.Errorf("cannot make DEV_DIR absolute: %w", err)
	}
	return dir, nil
}

func envFile(dir string) string { return filepath.Join(dir, "env") }

// loadConfig reads the stack's other variables.
func loadConfig(dir string, env environ) (*config, error) {
	c := &config{
		dir:           dir,
		api:           port{8080, "the API", "API_PORT"},
		apiMetrics:    port{9464, "the metrics of the API server", "API_METRICS_PORT"},
		workerMetrics: port{9465, "the metrics of the worker", "WORKER_METRICS_PORT"},
		temporal:      port{7233, "Temporal", "TEMPORAL_PORT"},
		temporalUI:    port{8233, "the Temporal Web UI", "TEMPORAL_UI_PORT"},
		ownTemporal:   env["TEMPORAL_ADDRESS"] == "",
	}
	for _, p := range c.ports() {
		if err := p.choose(env[p.variable]); err != nil {
			return nil, err
		}
	}
	c.apiAddress = c.api.address()
	if address := env["MILLWRIGHT_ADDR"]; address != "" {
		_, number, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("MILLWRIGHT_ADDR must have the form host:port, but is %q", address)
		}
		c.apiAddress, c.api.variable = reachable(address), "MILLWRIGHT_ADDR"
		if err := c.api.choose(number); err != nil {
			return nil, err
		}
	}
	return c, c.checkDistinct()
}

func (p *port) choose(text string) error {
	if text == "" {
		return nil
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 || number > 65535 {
		return fmt.Errorf("%s, the port of %s, must be a number from 1 to 65535, but is %q", p.variable, p.purpose, text)
	}
	p.number = number
	return nil
}

func (c *config) checkDistinct() error {
	usedBy := make(map[int]*port)
	for _, p := range c.ports() {
		if other, ok := usedBy[p.number]; ok {
			return fmt.Errorf("port %d is set for %s (%s) and for %s (%s): choose another for one of them",
				p.number, other.purpose, other.variable, p.purpose, p.variable)
		}
		usedBy[p.number] = p
	}
	return nil
}

// reachable returns the address to connect to for a server that listens on address.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = process.Loopback
	}
	return net.JoinHostPort(host, port)
}

// checkPorts checks that every port is free before anything starts. After a crash it
// waits a while for the killed stack's ports to become free.
func (c *config) checkPorts(wait time.Duration) error {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := c.takenPort()
		if err == nil || !errors.Is(err, process.ErrPortTaken) {
			return err
		}
		select {
		case <-deadline.C:
			return err
		case <-tick.C:
		}
	}
}

func (c *config) takenPort() error {
	for _, p := range c.ports() {
		if err := process.CheckPort(p.number); err != nil {
			return fmt.Errorf("%w but %s needs it: free it, or set %s to another", err, p.purpose, p.variable)
		}
	}
	return nil
}

// makeDirectory creates the stack's directory. Other users may pass through it, because the
// cluster in it may belong to one of them, but cannot list it.
func (c *config) makeDirectory() error {
	if _, err := os.Stat(c.dir); err == nil {
		return os.MkdirAll(c.logs(), 0o700)
	}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return fmt.Errorf("cannot create the directory for the stack's data: %w", err)
	}
	if err := os.Chmod(c.dir, 0o711); err != nil {
		return err
	}
	return os.MkdirAll(c.logs(), 0o700)
}

func (c *config) logs() string { return filepath.Join(c.dir, "logs") }

// log returns the path of a log file and keeps the previous run's as a copy.
func (c *config) log(name string) string {
	path := filepath.Join(c.logs(), name+".log")
	_ = os.Rename(path, path+".1") // it may not exist
	return path
}

// openLog opens a log file to write at its end.
func openLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}
