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
	// demoPerson is an administrator, who can sign in to the console.
	demoPerson = "margaret_ellison"
	demoEmail  = "margaret.ellison@northfield.example.com"
)

// credentials are the demo integration's client id and secret.
type credentials struct {
	ClientID      string `json:"client_id"`
	ClientSecret  string `json:"client_secret"`
	WebhookSecret string `json:"webhook_secret"`
	// PersonID is the demo's administrator, Password the one that the stack has set.
	PersonID string `json:"person_id,omitempty"`
	Password string `json:"password,omitempty"`
}

// importResult is the part of `millwright import`'s output that contains secrets.
type importResult struct {
	IDs          map[string]string `json:"ids"`
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
	if id := result.IDs[demoPerson]; id != "" && id != c.PersonID {
		c.PersonID, c.Password = id, ""
	}
	demo, ok := result.Integrations[demoIntegration]
	if !ok {
		return c, nil
	}
	if demo.ClientID != c.ClientID {
		c.ClientID, c.ClientSecret, c.WebhookSecret = demo.ClientID, "", ""
	}
	if demo.ClientSecret != "" {
		c.ClientSecret = demo.ClientSecret
	}
	if secret := demo.Webhooks[demoWebhook].Secret; secret != "" {
		c.WebhookSecret = secret
	}
	return c, nil
}

// importConflicts reports whether the import of the file is rejected only because it
// would undo changes.
func (r *runner) importConflicts(file string) bool {
	var output bytes.Buffer
	_ = r.runToEnd("import", &output, "--dry-run", "--json", file) // it fails if there are conflicts
	var compared struct {
		Conflicts int `json:"conflicts"`
	}
	return json.Unmarshal(output.Bytes(), &compared) == nil && compared.Conflicts > 0
}

// importDemo imports the files and keeps the credentials of the demo integration. A
// file that would undo what its developer changed in the demo is left alone.
func (r *runner) importDemo() error {
	for _, file := range r.opts.Demo {
		var output bytes.Buffer
		if err := r.runToEnd("import", &output, file); err != nil {
			if !r.importConflicts(file) {
				return err
			}
			r.printf("%s is not imported, because the demo was changed; `%s import --overwrite %s` imports it", file, r.opts.Millwright, file)
			continue
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
	if err := r.setDemoPassword(); err != nil {
		return err
	}
	r.demo = r.state.Demo[r.database]
	return nil
}

// setDemoPassword gives the demo's administrator a random password, once.
func (r *runner) setDemoPassword() error {
	demo := r.state.Demo[r.database]
	if demo.PersonID == "" || demo.Password != "" {
		return nil
	}
	var output bytes.Buffer
	if err := r.runToEnd("people", &output, "set-password", demo.PersonID, "--generate", "--json"); err != nil {
		return err
	}
	if err := json.Unmarshal(output.Bytes(), &demo); err != nil {
		return fmt.Errorf("the password of the demo cannot be read: %w", err)
	}
	r.state.Demo[r.database] = demo
	if err := r.state.save(r.cfg.dir); err != nil {
		return fmt.Errorf("cannot save the demo credentials: %w", err)
	}
	return nil
}
