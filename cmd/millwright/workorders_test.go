package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"millwright/models"
	"millwright/service"
	"millwright/service/servicetest"
)

// counter is where people's commands are run on the fixture of a test.
type counter struct {
	*servicetest.Fixture
	t *testing.T
}

func newCounter(t *testing.T) counter {
	t.Helper()
	f := servicetest.New(t)
	t.Setenv("DATABASE_URL", f.Pool.Config().ConnString())
	t.Setenv("TOKEN_SIGNING_KEYS", servicetest.TokenKeys)
	t.Setenv("SECRET_SEALING_KEYS", servicetest.SealingKeys)
	return counter{f, t}
}

// ask runs a command of the program.
func (c counter) ask(args ...string) (string, error) {
	c.t.Helper()
	root := &cobra.Command{Use: "millwright", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(workOrdersCommand(), issuesCommand())
	var printed bytes.Buffer
	root.SetOut(&printed)
	root.SetErr(&printed)
	root.SetArgs(args)
	err := root.ExecuteContext(c.t.Context())
	return printed.String(), err
}

func (c counter) status(table, id string) string {
	return servicetest.Value[string](c.Fixture, `SELECT status FROM `+table+` WHERE id = $1`, id)
}

// inReview is a work order that waits for cat's review.
func (c counter) inReview() string {
	c.t.Helper()
	erp := c.Actor("erp")
	answer, err := c.CreateWorkOrder(c.t.Context(), erp, service.Call{}, service.NewWorkOrder{
		InventoryID: c.ID("ahu1"), Title: "Replace\tfilter", Assignees: []string{c.ID("erp")}, Consultants: []string{c.ID("cat")},
	})
	if err == nil {
		_, err = c.AnswerWorkOrder(c.t.Context(), erp, service.Call{}, answer.RecordID, nil, true)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return answer.RecordID
}

func TestWorkOrderCommands(t *testing.T) {
	c := newCounter(t)
	id := c.inReview()
	for _, step := range []struct {
		name   string
		args   []string
		status string
	}{
		{"send back, by e-mail address", []string{"review", id, "--send-back", "--comment", "Loose", "--as", "CAT@acme.example.com"}, "back_from_inspection"},
		{"hold", []string{"hold", id, "--as", c.ID("ann")}, "on_hold"},
		{"resume", []string{"resume", id, "--as", "ann@acme.example.com"}, "back_from_inspection"},
	} {
		out, err := c.ask(append([]string{"work-orders"}, append(step.args, "--json")...)...)
		var record models.WorkOrderRecord
		if err == nil {
			err = json.Unmarshal([]byte(out), &record)
		}
		if err != nil || record.ID != id || record.Status.Code != step.status || c.status("work_orders", id) != step.status {
			t.Errorf("%s: %s, %v", step.name, out, err)
		}
	}
	comment := servicetest.Value[string](c.Fixture, `SELECT changes -> 'comment' ->> 'to' FROM history WHERE record_id = $1 AND action = 'work_order.sent_back'`, id)
	if comment != "Loose" {
		t.Errorf("the comment is %q", comment)
	}
	other := c.inReview()
	out, err := c.ask("work-orders", "review", other, "--approve", "--as", c.ID("cat"))
	if err != nil || !strings.Contains(out, other) || !strings.Contains(out, "Complete") || strings.Contains(out, "Replace\tfilter") {
		t.Errorf("approved: %q, %v", out, err)
	}
}

// A refusal is a sentence that says what is wrong, and changes nothing.
func TestWorkOrderCommandsRefuse(t *testing.T) {
	c := newCounter(t)
	id := c.inReview()
	for _, test := range []struct {
		name string
		args []string
		says string
	}{
		{"neither way", []string{"review", id, "--as", c.ID("cat")}, "either --approve or --send-back"},
		{"both ways", []string{"review", id, "--approve", "--send-back", "--as", c.ID("cat")}, "either --approve or --send-back"},
		{"approval taken back", []string{"review", id, "--approve=false", "--as", c.ID("cat")}, "either --approve or --send-back"},
		{"nobody to act as", []string{"review", id, "--approve"}, `"as"`},
		{"an unknown person", []string{"review", id, "--approve", "--as", "nobody@acme.example.com"}, "--as: there is no person"},
		{"an integration", []string{"review", id, "--approve", "--as", c.ID("erp")}, "--as: there is no person"},
		{"an empty person", []string{"hold", id, "--as", ""}, "--as: there is no person"},
		{"no consultant", []string{"review", id, "--approve", "--as", c.ID("ann")}, "Only a consultant"},
		{"too long a comment", []string{"review", id, "--approve", "--comment", strings.Repeat("x", 1001), "--as", c.ID("cat")}, "at most 1,000 characters"},
		{"an unknown work order", []string{"hold", "wo_00000000000000000000000000", "--as", c.ID("ann")}, "there is no work order wo_00000000000000000000000000 that the person may read"},
		{"one that may not be read", []string{"hold", id, "--as", c.ID("zed")}, "there is no work order " + id + " that the person may read"},
		{"a status that does not allow it", []string{"hold", id, "--as", c.ID("ann")}, `"Sent to the consultant's review" does not allow this`},
		{"no work order", []string{"hold", "--as", c.ID("ann")}, "accepts 1 arg"},
		{"an unknown command", []string{"paint"}, `unknown command "paint"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, err := c.ask(append([]string{"work-orders"}, test.args...)...)
			if err == nil || !strings.Contains(err.Error(), test.says) || out != "" {
				t.Errorf("it prints %q and says %v, want %s", out, err, test.says)
			}
			if status := c.status("work_orders", id); status != "sent_to_inspection" {
				t.Errorf("the status is %s", status)
			}
		})
	}
}

func TestIssuesResolve(t *testing.T) {
	c := newCounter(t)
	give := func() string {
		answer, err := c.CreateFeedback(t.Context(), c.Actor("erp"), service.Call{}, service.NewFeedback{InventoryID: c.ID("ahu1"), Subject: "It rattles"})
		if err != nil {
			t.Fatal(err)
		}
		return answer.RecordID
	}
	id, other := give(), give()
	out, err := c.ask("issues", "resolve", id, "--as", "ann@acme.example.com", "--json")
	var record models.FeedbackRecord
	if err == nil {
		err = json.Unmarshal([]byte(out), &record)
	}
	if err != nil || record.ID != id || record.ResolvedAt == nil || c.status("feedback", id) != "resolved" {
		t.Errorf("resolved: %s, %v", out, err)
	}
	for says, args := range map[string][]string{
		`"Resolved" does not allow this`: {id, "--as", c.ID("ann")},
		`"as"`:                           {other},
		"there is no feedback " + other:  {other, "--as", c.ID("bob")},
		"there is no feedback iss_x":     {"iss_x", "--as", c.ID("ann")},
	} {
		if out, err := c.ask(append([]string{"issues", "resolve"}, args...)...); err == nil || !strings.Contains(err.Error(), says) || out != "" {
			t.Errorf("%v prints %q and says %v", args, out, err)
		}
	}
	if status := c.status("feedback", other); status != "open" {
		t.Errorf("the refused one is %s", status)
	}
	if out, err := c.ask("issues", "resolve", other, "--as", c.ID("ann")); err != nil || !strings.Contains(out, "Resolved") || !strings.Contains(out, "It rattles") {
		t.Errorf("for people: %q, %v", out, err)
	}
}
