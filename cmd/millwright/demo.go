package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"millwright/models"
	"millwright/service"
	"millwright/service/records"
	"millwright/service/store"
)

// demoStep is something that someone does in a demo. One of the names is the action: Create and
// Report name a new work order or new feedback, the others one that was named.
type demoStep struct {
	Day    int    `yaml:"day"`
	At     string `yaml:"at"`
	By     string `yaml:"by"`
	Create string `yaml:"create"`
	Report string `yaml:"report"`

	Begin    string `yaml:"begin"`
	Complete string `yaml:"complete"`
	Approve  string `yaml:"approve"`
	SendBack string `yaml:"send_back"`
	Hold     string `yaml:"hold"`
	Cancel   string `yaml:"cancel"`
	Forward  string `yaml:"forward"`
	Resolve  string `yaml:"resolve"`
	// Comment is the commented record.
	Comment string `yaml:"comment"`

	Node        string          `yaml:"node"`
	Title       string          `yaml:"title"`
	Text        *string         `yaml:"text"`
	Priority    models.Priority `yaml:"priority"`
	Due         string          `yaml:"due"`
	External    *string         `yaml:"external"`
	Form        string          `yaml:"form"`
	Workers     []string        `yaml:"workers"`
	Consultants []string        `yaml:"consultants"`
	Question    string          `yaml:"question"`
	Number      json.Number     `yaml:"number"`
}

func demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo WEEK.yaml ORGANIZATION.yaml…",
		Short: "Fill a demo with work: import the organizations and take the steps of the week, on the days before today",
		Args:  cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			s, err := loadSettings()
			if err != nil {
				return err
			}
			text, err := readImportFile(ctx, args[0])
			if err != nil {
				return err
			}
			var steps []demoStep
			if err := yaml.Unmarshal(text, &steps); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			d := demo{now: time.Now(), ids: map[string]string{}, programs: map[string]store.Actor{}}
			svc, pools, err := openService(ctx, s, "millwright demo", requireSchema, func(o *store.Options, _ store.Pools) {
				o.Now = func() time.Time { return d.now }
			})
			if err != nil {
				return err
			}
			defer pools.Close()
			d.Service = svc
			if err := d.organizations(ctx, args[1:]); err != nil {
				return err
			}
			if err := d.live(ctx, pools, steps); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d steps\n", len(steps))
			return nil
		},
	}
}

// demo is a service whose clock goes through the steps, with the ids of keys and names.
type demo struct {
	*service.Service
	now time.Time
	ids map[string]string
	// programs are the integrations by their keys.
	programs map[string]store.Actor
}

// organizations imports the files and keeps the ids of their keys.
func (d *demo) organizations(ctx context.Context, files []string) error {
	for _, file := range files {
		text, err := readImportFile(ctx, file)
		if err != nil {
			return err
		}
		imported, err := d.Imports.Run(ctx, text)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for key, id := range imported.IDs {
			if _, known := d.ids[key]; !known {
				d.ids[key] = id
			}
		}
		var named struct {
			Organization struct{ Key string }
			Integrations []struct{ Key, Name string }
		}
		if err := yaml.Unmarshal(text, &named); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		d.ids[named.Organization.Key] = imported.OrganizationID
		for _, i := range named.Integrations {
			d.programs[i.Key] = store.Actor{IdentityID: imported.IDs[i.Key], OrganizationID: imported.OrganizationID, Kind: models.KindIntegration, Name: i.Name}
		}
	}
	return nil
}

// live takes the steps.
func (d *demo) live(ctx context.Context, pools store.Pools, steps []demoStep) error {
	now, first := d.now, 0
	for _, step := range steps {
		first = min(first, step.Day)
	}
	if _, err := pools.Others.Exec(ctx, `SELECT partitions.make($1, $2::integer)`, now.UTC().AddDate(0, 0, first), -first); err != nil {
		return fmt.Errorf("make the partitions: %w", err)
	}
	for _, step := range steps {
		at, err := d.time(now, fmt.Sprintf("%d %s", step.Day, step.At))
		if err != nil {
			return err
		}
		if step.Day >= 0 {
			return fmt.Errorf("the step of %s at %s is not on a day before today: at another time of day the demo would lack it", step.By, step.At)
		}
		d.now = at
		if err := d.take(ctx, now, step); err != nil {
			return fmt.Errorf("the step of %s on day %d at %s: %w", step.By, step.Day, step.At, err)
		}
	}
	return nil
}

// time returns the time of "DAY 15:04", with days that count from the day of now.
func (d *demo) time(now time.Time, text string) (time.Time, error) {
	var day, hour, minute int
	if _, err := fmt.Sscanf(text, "%d %d:%d", &day, &hour, &minute); err != nil {
		return time.Time{}, fmt.Errorf("%q is not a day and a time: %w", text, err)
	}
	today := now.UTC()
	return time.Date(today.Year(), today.Month(), today.Day()+day, hour, minute, 0, 0, time.UTC), nil
}

// all returns the ids of keys or names.
func (d *demo) all(keys []string) (ids []string) {
	for _, key := range keys {
		ids = append(ids, cmp.Or(d.ids[key], key))
	}
	return ids
}

// actor returns the person or integration with the key.
func (d *demo) actor(ctx context.Context, key string) (store.Actor, error) {
	if program, ok := d.programs[key]; ok {
		return program, nil
	}
	return d.Access.PersonActor(ctx, d.ids[key])
}

func (d *demo) take(ctx context.Context, now time.Time, step demoStep) error {
	actor, err := d.actor(ctx, step.By)
	if err != nil {
		return err
	}
	comment := strings.TrimSpace(step.Comment)
	switch {
	case step.Create != "":
		return d.create(ctx, actor, now, step)
	case step.Report != "":
		result, err := d.Records.CreateFeedback(ctx, actor, store.NoKey, records.NewFeedback{InventoryID: d.ids[step.Node], Subject: step.Title, Description: step.Text, ExternalID: step.External})
		d.ids[step.Report] = result.RecordID
		return err
	case step.Begin != "":
		_, err = d.Records.AnswerWorkOrder(ctx, actor, store.NoKey, d.ids[step.Begin], []records.GivenAnswer{{QuestionID: d.ids[step.Question], Value: step.Number}}, records.SaveAnswers)
	case step.Complete != "":
		_, err = d.Records.AnswerWorkOrder(ctx, actor, store.NoKey, d.ids[step.Complete], nil, records.CompleteWork)
	case step.Approve != "", step.SendBack != "":
		_, err = d.Records.ReviewWorkOrder(ctx, actor, store.NoKey, d.ids[step.Approve+step.SendBack], records.Review{Approve: step.Approve != "", Comment: comment})
	case step.Hold != "":
		_, err = d.Records.HoldWorkOrder(ctx, actor, store.NoKey, d.ids[step.Hold])
	case step.Cancel != "":
		_, err = d.Records.CancelWorkOrder(ctx, actor, store.NoKey, d.ids[step.Cancel], &comment)
	case step.Forward != "":
		_, err = d.Records.AssignWorkOrder(ctx, actor, store.NoKey, d.ids[step.Forward], d.all(step.Workers), nil)
	case step.Resolve != "":
		_, err = d.Records.ResolveFeedback(ctx, actor, store.NoKey, d.ids[step.Resolve])
	case step.Text != nil:
		err = d.Records.AddComment(ctx, actor, store.NoKey, d.ids[comment], *step.Text)
	default:
		err = errors.New("it has no effect")
	}
	return err
}

func (d *demo) create(ctx context.Context, actor store.Actor, now time.Time, step demoStep) error {
	due, err := d.time(now, step.Due)
	if err != nil {
		return err
	}
	in := records.NewWorkOrder{
		InventoryID: d.ids[step.Node], Title: step.Title, Description: step.Text, Priority: step.Priority, TargetDate: new(models.TimeOf(due)), ExternalID: step.External,
		Assignees: d.all(step.Workers), Consultants: d.all(step.Consultants),
	}
	if step.Form != "" {
		in.FormID = new(d.ids[step.Form])
	}
	result, err := d.Records.CreateWorkOrder(ctx, actor, store.NoKey, in)
	d.ids[step.Create] = result.RecordID
	return err
}
