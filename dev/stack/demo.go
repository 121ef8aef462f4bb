package stack

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// The demo organization's integration with every scope, and its webhook address.
const (
	demoIntegration = "erp"
	demoWebhook     = "erp_hook"
)

// credentials are those of the demo integration.
type credentials struct {
	ClientID      string `json:"client_id"`
	ClientSecret  string `json:"client_secret"`
	WebhookSecret string `json:"webhook_secret"`
}

// importResult is the part of `millwright import`'s output that contains secrets.
type importResult struct {
	Integrations map[string]struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
		Webhooks     map[string]struct {
			Secret string `json:"secret"`
		} `json:"webhooks"`
	} `json:"integrations"`
}

// merge updates the credentials from an import's output. Secrets appear only in the
// run that creates them, so a missing secret keeps the known one, unless that belongs
// to another integration.
func (c credentials) merge(output []byte) (credentials, error) {
	var result importResult
	if err := json.NewDecoder(bytes.NewReader(output)).Decode(&result); err != nil {
		return c, fmt.Errorf("the import did not print JSON: %w", err)
	}
	demo, ok := result.Integrations[demoIntegration]
	if !ok {
		return c, nil
	}
	if demo.ClientID != c.ClientID {
		c = credentials{ClientID: demo.ClientID}
	}
	if demo.ClientSecret != "" {
		c.ClientSecret = demo.ClientSecret
	}
	if secret := demo.Webhooks[demoWebhook].Secret; secret != "" {
		c.WebhookSecret = secret
	}
	return c, nil
}

// importDemo imports the files and keeps the credentials of the demo integration.
func (r *runner) importDemo() error {
	for _, file := range r.opts.Demo {
		var output bytes.Buffer
		if err := r.runToEnd("import", &output, file); err != nil {
			return err
		}
		merged, err := r.state.Demo[r.database].merge(output.Bytes())
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		r.state.Demo[r.database] = merged
		// Saved now, because no later run prints the secrets again.
		if err := r.state.save(r.cfg.dir); err != nil {
			return fmt.Errorf("cannot save the demo credentials: %w", err)
		}
	}
	r.demo = r.state.Demo[r.database]
	return nil
}
