package stack

import (
	"bufio"
	"io"
	"strings"

	"millwright/dev/process"
)

// demoReceiverPort is the port of the demo's webhook address.
const demoReceiverPort = 9090

// startReceiver starts the receiver of the demo's webhook address, which accepts every
// delivery, unless something else uses its port.
func (r *runner) startReceiver() error {
	if r.demo.WebhookSecret == "" {
		return nil
	}
	if err := process.CheckPort(r.receiverPort); err != nil {
		r.printf("%v: the demo's receiver does not run", err)
		return nil
	}
	cmd := r.command("listen")
	cmd.Env = append(cmd.Env, "WEBHOOK_SECRET="+r.demo.WebhookSecret)
	var err error
	r.receiver, err = process.Start(cmd, process.Options{Name: "the demo's receiver", Log: r.cfg.log("receiver")})
	return err
}

func (r *runner) receiverRuns() bool { return r.receiver != nil && r.receiver.Running() }

func (r *runner) stopReceiver() {
	if r.receiver != nil {
		r.receiver.Stop()
	}
}

// obey follows a line that is entered in the terminal: r stops or starts the demo's
// receiver, anything else prints the report again.
func (r *runner) obey(line string) {
	switch {
	case strings.TrimSpace(line) != "r":
		r.report()
	case r.receiverRuns():
		r.stopReceiver()
		r.printf("the demo's receiver has stopped; r and Enter starts it again")
	default:
		if err := r.startReceiver(); err != nil {
			r.printf("the demo's receiver does not start: %v", err)
		} else if r.receiverRuns() {
			r.printf("the demo's receiver runs")
		}
	}
}

// linesOf returns a channel of the lines that are entered.
func linesOf(terminal io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		for entered := bufio.NewScanner(terminal); entered.Scan(); {
			lines <- entered.Text()
		}
	}()
	return lines
}
