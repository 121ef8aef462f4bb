package stack

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// The integration of the demo organization that has every scope, and its
// webhook address.
const (
	demoIntegration = "erp"
	demoWebhook     = "erp_hook"
)

// credentials are the demo integration's.
type credentials struct {
	ClientID      string `json:"client_id"`
	ClientSecret  string `json:"client_secret"`
	WebhookSecret string `json:"webhook_secret"`
}

// importResult is the part of `millwright import`'s answer that holds secrets.
type importResult struct {
	Integrations map[string]struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
		Webhooks     map[string]struct {
			Secret string `json:"secret"`
		} `json:"webhooks"`
	} `json:"integrations"`
}

// merge takes over what an import tells about the demo integration. Secrets
// appear only in the run that creates them, so a missing one changes nothing,
// unless they belonged to another integration.
func (c credentials) merge(output []byte) (credentials, error) {
	var result importResult
	if err := json.NewDecoder(bytes.NewReader(output)).Decode(&result); err != nil {
		return c, fmt.Errorf("the import did not answer with JSON: %w", err)
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

// importDemo imports the files and keeps what they tell of the demo
// integration.
func (r *runner) importDemo() error {
	for _, file := range r.opts.Demo {
		var output bytes.Buffer
		if err := r.once("import", &output, file); err != nil {
			return err
		}
		merged, err := r.state.Demo[r.database].merge(output.Bytes())
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		r.state.Demo[r.database] = merged
		// Saved at once: no later run is told the secrets again.
		if err := r.state.save(r.cfg.dir); err != nil {
			return fmt.Errorf("the demo credentials could not be kept: %w", err)
		}
	}
	r.demo = r.state.Demo[r.database]
	return nil
}
