package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"millwright/webhook"
)

// receiver prints the deliveries it verifies, and fails on purpose if asked to.
type receiver struct {
	secret string
	status int
	delay  time.Duration
	hang   bool
	every  int
	body   bool
	// record is where what is received is kept, nil for nowhere.
	record *recording
	out    io.Writer
	count  atomic.Int64
}

func listenCommand() *cobra.Command {
	r := &receiver{}
	var address, directory string
	var secret secretFlag
	cmd := &cobra.Command{
		Use:   "listen",
		Short: "Receive webhooks: print each verified delivery, or fail on purpose",
		Long: "Receives deliveries, verifies their signatures and prints a line for each.\n" +
			"With --status, --delay or --hang it fails on purpose: each time, or every n-th time with --every n.\n" +
			"The signing secret comes from WEBHOOK_SECRET or a file, because arguments are visible to all users of a machine.\n" +
			"With --record each delivery becomes a file in a directory, headers and body as they came; replay sends them again.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if r.secret, err = secret.read(); err != nil {
				return err
			}
			if directory != "" {
				if r.record, err = openRecording(directory); err != nil {
					return err
				}
			}
			r.out = cmd.OutOrStdout()
			listener, err := (&net.ListenConfig{}).Listen(cmd.Context(), "tcp", address)
			if err != nil {
				return fmt.Errorf("cannot listen on %s: is another program using it?", address)
			}
			fmt.Fprintf(r.out, "listening on http://%s\n", listener.Addr())
			return serve(cmd.Context(), &http.Server{
				Handler: r, ReadHeaderTimeout: 10 * time.Second,
				BaseContext: func(net.Listener) context.Context { return cmd.Context() },
			}, listener)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&address, "addr", "127.0.0.1:9090", "address to listen on")
	secret.flag(cmd)
	flags.StringVar(&directory, "record", "", "also write each verified delivery as a file into this directory")
	flags.IntVar(&r.status, "status", 0, "respond with this status instead of 204")
	flags.DurationVar(&r.delay, "delay", 0, "wait this long before responding")
	flags.BoolVar(&r.hang, "hang", false, "never respond")
	flags.IntVar(&r.every, "every", 1, "fail only every n-th time")
	flags.BoolVar(&r.body, "body", false, "also print the body")
	return cmd
}

// recording is a directory with a file for each delivery. Numbers at the beginning of the names
// keep their order.
type recording struct {
	directory string
	number    atomic.Int64
}

// openRecording opens a recording, a new one if the directory does not exist. New deliveries get
// the numbers after those it has.
func openRecording(directory string) (*recording, error) {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, fmt.Errorf("cannot record: %w", err)
	}
	files, err := os.ReadDir(directory)
	if err != nil {
		return nil, fmt.Errorf("cannot record: %w", err)
	}
	r := &recording{directory: directory}
	for _, file := range files {
		number, _, _ := strings.Cut(file.Name(), "-")
		if n, err := strconv.ParseInt(number, 10, 64); err == nil {
			r.number.Store(max(n, r.number.Load()))
		}
	}
	return r, nil
}

// add writes a delivery to a new file.
func (r *recording) add(event webhook.Event, content []byte) error {
	name := fmt.Sprintf("%06d-%s-%s.http", r.number.Add(1), event.Type, event.ID)
	file, err := os.OpenFile(filepath.Join(r.directory, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}

// ServeHTTP receives one delivery.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	started := time.Now()
	var received []byte
	if r.record != nil {
		var err error
		req.Body = http.MaxBytesReader(w, req.Body, webhook.MaxBody)
		if received, err = httputil.DumpRequest(req, true); err != nil {
			http.Error(w, "The request cannot be read.", http.StatusBadRequest)
			return
		}
	}
	event, err := webhook.VerifyRequest(req, r.secret, started)
	if err != nil {
		fmt.Fprintf(r.out, "%s  rejected: %s\n", started.UTC().Format(time.TimeOnly), err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	n := r.count.Add(1)
	if r.record != nil {
		// A delivery that is not on disk is not acknowledged.
		if err := r.record.add(event, received); err != nil {
			fmt.Fprintf(r.out, "%s  #%d  cannot be recorded: %s\n", started.UTC().Format(time.TimeOnly), n, err)
			http.Error(w, "The delivery cannot be recorded.", http.StatusInternalServerError)
			return
		}
	}
	failing := r.every > 0 && n%int64(r.every) == 0
	status := http.StatusNoContent
	if failing && r.status != 0 {
		status = r.status
	}
	age := started.Sub(event.CreatedAt).Round(time.Millisecond)
	note := ""
	if failing && r.hang {
		note = "  (hanging)"
	}
	fmt.Fprintf(r.out, "%s  #%d  %s  %s  verified, %s after the event, responded %d%s\n",
		started.UTC().Format(time.TimeOnly), n, event.Type, event.ID, age, status, note)
	if r.body {
		fmt.Fprintf(r.out, "    %s\n", event.Data)
	}
	if failing && !r.pause(req.Context()) {
		return
	}
	w.WriteHeader(status)
}

// pause waits for the delay and reports whether to respond.
func (r *receiver) pause(ctx context.Context) bool {
	if r.hang {
		<-ctx.Done()
		return false
	}
	select {
	case <-time.After(r.delay):
		return true
	case <-ctx.Done():
		return false
	}
}
