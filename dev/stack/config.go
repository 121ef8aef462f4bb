package stack

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"millwright/dev/process"
)

// portPatience is the time that a killed stack's processes have to free their ports.
const portPatience = time.Second

// port is a port of the stack, its purpose, and the variable that chooses another.
type port struct {
	number   int
	purpose  string
	variable string
}

func (p port) address() string { return process.Address(p.number) }

// config is what the environment sets for `devstack run`.
type config struct {
	dir                                                  string
	api, apiMetrics, workerMetrics, temporal, temporalUI port
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
func devDir() string { return cmp.Or(os.Getenv("DEV_DIR"), ".dev") }

func envFile(dir string) string { return filepath.Join(dir, "env") }

func loadConfig(dir string) (*config, error) {
	c := &config{
		dir:           dir,
		api:           port{8080, "the API", "API_PORT"},
		apiMetrics:    port{9464, "the metrics of the API server", "API_METRICS_PORT"},
		workerMetrics: port{9465, "the metrics of the worker", "WORKER_METRICS_PORT"},
		temporal:      port{7233, "Temporal", "TEMPORAL_PORT"},
		temporalUI:    port{8233, "the Temporal Web UI", "TEMPORAL_UI_PORT"},
		ownTemporal:   os.Getenv("TEMPORAL_ADDRESS") == "",
	}
	for _, p := range c.ports() {
		text := os.Getenv(p.variable)
		if text == "" {
			continue
		}
		number, err := strconv.ParseUint(text, 10, 16)
		if err != nil || number == 0 {
			return nil, fmt.Errorf("%s, the port of %s, must be a number from 1 to 65535, but is %q", p.variable, p.purpose, text)
		}
		p.number = int(number)
	}
	return c, nil
}

// checkPorts checks that every port is free before anything starts.
func (c *config) checkPorts() error {
	ctx, cancel := context.WithTimeout(context.Background(), portPatience)
	defer cancel()
	return process.Await(ctx, 50*time.Millisecond, func() error {
		for _, p := range c.ports() {
			if err := process.CheckPort(p.number); err != nil {
				return fmt.Errorf("%w but %s needs it: free it, or set %s to another", err, p.purpose, p.variable)
			}
		}
		return nil
	})
}

func (c *config) logs() string { return filepath.Join(c.dir, "logs") }

// log returns the path of a log file and keeps the previous one as a copy.
func (c *config) log(name string) string {
	path := filepath.Join(c.logs(), name+".log")
	_ = os.Rename(path, path+".1") // it may not exist
	return path
}

// uiURL is where Temporal's Web UI is.
func (c *config) uiURL() string { return "http://" + c.temporalUI.address() }
