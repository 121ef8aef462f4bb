package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"millwright/webhook"
)

func replayCommand() *cobra.Command {
	var secret secretFlag
	var to string
	cmd := &cobra.Command{
		Use:   "replay FILE... --to URL",
		Short: "Send deliveries that listen recorded to a receiver again; exits 0 only if all get 2xx",
		Long: "Sends the bodies of recorded deliveries to a receiver, one by one in the order of the files, signed with the\n" +
			"secret for the present time: receivers reject signatures that are older than five minutes. It needs no service.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := secret.read()
			if err != nil {
				return err
			}
			signer, err := webhook.NewSigner(text)
			if err != nil {
				return err
			}
			failed := 0
			for _, file := range args {
				status, err := replay(cmd.Context(), signer, file, to)
				if err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s  responded %d\n", file, status)
				if status < 200 || status > 299 {
					failed++
				}
			}
			if failed > 0 {
				return fmt.Errorf("%d of %d were not accepted", failed, len(args))
			}
			return nil
		},
	}
	secret.flag(cmd)
	cmd.Flags().StringVar(&to, "to", "", "URL of the receiver")
	require(cmd, "to")
	return cmd
}

// replay sends a recorded delivery, signed for now, and returns the status of the response.
// Errors: the file is no recorded delivery, or no response came.
func replay(ctx context.Context, signer *webhook.Signer, file, to string) (status int, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	recorded, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(content)))
	if err != nil {
		return 0, fmt.Errorf("it is not a recorded delivery: %w", err)
	}
	defer recorded.Body.Close()
	body, err := io.ReadAll(recorded.Body)
	if err != nil {
		return 0, fmt.Errorf("it is not a recorded delivery: %w", err)
	}
	id, kind := recorded.Header.Get(webhook.HeaderEventID), recorded.Header.Get(webhook.HeaderEventType)
	if id == "" || kind == "" {
		return 0, fmt.Errorf("it is not a recorded delivery: %s or %s is missing", webhook.HeaderEventID, webhook.HeaderEventType)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header = recorded.Header.Clone()
	for name, values := range signer.Header(id, kind, time.Now(), body) {
		request.Header[name] = values
	}
	response, err := (&http.Client{Timeout: time.Minute}).Do(request)
	if err != nil {
		return 0, err
	}
	response.Body.Close()
	return response.StatusCode, nil
}
