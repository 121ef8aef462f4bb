package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"millwright/models"
)

// secretFlag is where a webhook address's signing secret comes from: a file or the
// environment. An argument would be visible in the list of processes.
type secretFlag struct{ file string }

func (f *secretFlag) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "secret-file", "", "file with the signing secret (default: WEBHOOK_SECRET)")
}

// read returns the secret. Errors: it is missing, or the file cannot be read.
func (f *secretFlag) read() (string, error) {
	secret := os.Getenv("WEBHOOK_SECRET")
	if f.file != "" {
		content, err := os.ReadFile(f.file)
		if err != nil {
			return "", fmt.Errorf("cannot read the signing secret: %w", err)
		}
		secret = string(content)
	}
	if secret = models.Trim(secret); secret == "" {
		return "", errors.New("the signing secret is missing: set WEBHOOK_SECRET or give --secret-file")
	}
	return secret, nil
}
