package stack

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
)

// The demo organization's integration with every scope, and its webhook address.
const (
	demoIntegration = "erp"
	demoWebhook     = "erp_hook"
)

// demoPeople are the people of the demo who can sign in to the console, by their keys: the first
// is the administrator.
var demoPeople = []struct{ key, does, email string }{
	{"margaret_ellison", "administrator", "margaret.ellison@northfield.example.com"},
	{"priya_raghavan", "manager", "priya.raghavan@northfield.example.com"},
	{"ravi_subramaniam", "worker", "ravi.subramaniam@northfield.example.com"},
	{"vikram_desai", "consultant", "vikram.desai@northfield.example.com"},
	{"david_pryce", "integrations", "david.pryce@northfield.example.com"},
	{"nadia_petrov", "requester", "nadia.petrov@northfield.example.com"},
	{"neil_farrow", "dispatcher", "neil.farrow@polar-lifts.example.com"},
}

// credentials are the demo integration's client id and secret.
type credentials struct {
	ClientID      string `json:"client_id"`
	ClientSecret  string `json:"client_secret"`
	WebhookSecret string `json:"webhook_secret"`
	// People are those who can sign in, by their keys.
	People map[string]signIn `json:"people,omitempty"`
	// Worked is true once the demo has its week of work.
	Worked bool `json:"worked,omitempty"`
}

// signIn is a person with the password that the stack has set.
type signIn struct {
	PersonID string `json:"person_id"`
	Password string `json:"password"`
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
// run that creates them, so a missing secret keeps the known one.
func (c credentials) merge(output []byte) (credentials, error) {
	var result importResult
	if err := json.Unmarshal(output, &result); err != nil {
		return c, fmt.Errorf("the import did not print JSON: %w", err)
	}
	people := map[string]signIn{}
	maps.Copy(people, c.People)
	for _, person := range demoPeople {
		if id := result.IDs[person.key]; id != "" && id != people[person.key].PersonID {
			people[person.key] = signIn{PersonID: id}
		}
	}
	c.People = people
	demo := result.Integrations[demoIntegration]
	c.ClientID = cmp.Or(demo.ClientID, c.ClientID)
	c.ClientSecret = cmp.Or(demo.ClientSecret, c.ClientSecret)
	c.WebhookSecret = cmp.Or(demo.Webhooks[demoWebhook].Secret, c.WebhookSecret)
	return c, nil
}

// importDemo imports the files and keeps the credentials of the demo integration. A
// file that would undo what its developer changed in the demo is left alone.
func (r *runner) importDemo() error {
	for _, file := range r.opts.Demo {
		var output bytes.Buffer
		if err := r.runToEnd(&output, "import", file); err != nil {
			if !r.demo.Worked || r.ctx.Err() != nil {
				return err
			}
			r.printf("%s is not imported, see above: if the demo was changed, `%s import --overwrite %s` undoes that", file, r.opts.Millwright, file)
			continue
		}
		merged, err := r.demo.merge(output.Bytes())
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		r.demo = merged
		// Saved now, because no later run prints the secrets again.
		if err := r.keepDemo(); err != nil {
			return err
		}
	}
	if err := r.setDemoPasswords(); err != nil {
		return err
	}
	return r.addDemoWork()
}

// setDemoPasswords gives each of the demo's people a random password, once.
func (r *runner) setDemoPasswords() error {
	for key, known := range r.demo.People {
		if known.Password != "" {
			continue
		}
		var output bytes.Buffer
		if err := r.runToEnd(&output, "people", "set-password", known.PersonID, "--generate", "--json"); err != nil {
			return err
		}
		if err := json.Unmarshal(output.Bytes(), &known); err != nil {
			return fmt.Errorf("a password of the demo cannot be read: %w", err)
		}
		r.demo.People[key] = known
		if err := r.keepDemo(); err != nil {
			return err
		}
	}
	return nil
}

// addDemoWork fills the demo with its week of work, once.
func (r *runner) addDemoWork() error {
	if r.demo.Worked {
		return nil
	}
	if err := r.runToEnd(nil, append([]string{"demo", r.opts.Week}, r.opts.Demo...)...); err != nil {
		return err
	}
	r.demo.Worked = true
	return r.keepDemo()
}

func (r *runner) keepDemo() error {
	r.state.Demo[r.database] = r.demo
	if err := r.state.save(r.cfg.dir); err != nil {
		return fmt.Errorf("cannot save the demo credentials: %w", err)
	}
	return nil
}
