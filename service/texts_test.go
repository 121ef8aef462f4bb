package service_test

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"millwright/models"
	"millwright/service/inventory"
	"millwright/service/lists"
	"millwright/service/pages"
	"millwright/service/people"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// anyScript are strings of many scripts, with punctuation, marks and what shows nothing.
var anyScript = rapid.Custom(func(t *rapid.T) string {
	return rapid.OneOf(
		rapid.StringMatching(`[\p{L}\p{N}\p{P}\p{S}\p{M} ]{1,30}`),
		rapid.StringOfN(rapid.RuneFrom([]rune("aZ09 -_/.,'\"\\&|!():*<>=@#°€äÖßİıſΣςάЖё京都東ひがカー한글กรุงထိုင်ဋ\u0301\u0308\u200b\u00ad\u3000🔧")), 1, 30, -1),
	).Filter(func(text string) bool { return !models.IsBlank(text) && len([]rune(norm.NFD.String(text))) <= 60 }).Draw(t, "text")
})

// A stored string is found by itself, in another case and in another normal form, whatever the locale of the database.
func TestWhatIsStoredIsFoundByItself(t *testing.T) {
	t.Parallel()
	for name, locale := range servicetest.Locales {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := servicetest.NewInLocale(t, locale)
			ctx, ann := t.Context(), servicetest.Person(t, f, "ann")
			rapid.Check(t, func(t *rapid.T) {
				text := anyScript.Draw(t, "title")
				created, err := f.Records.CreateWorkOrder(ctx, f.Actor("erp"), store.NoKey, records.NewWorkOrder{
					InventoryID: f.ID("ahu1"), Title: text, ExternalID: &text, Assignees: []string{f.ID("bob")},
				})
				if err != nil {
					t.Fatal(err)
				}
				f.Exec(`UPDATE inventory_nodes SET name = $1, external_id = $1 WHERE id = $2`, text, f.ID("annex"))
				f.Exec(`UPDATE identities SET name = $1 WHERE id = ANY ($2)`, text, []string{f.ID("crew"), f.ID("bob")})
				said, err := f.Records.CreateFeedback(ctx, f.Actor("erp"), store.NoKey, records.NewFeedback{InventoryID: f.ID("ahu1"), Subject: text})
				if err != nil {
					t.Fatal(err)
				}
				f.Exec(`UPDATE log SET actor_name = $1 WHERE record_id = $2`, norm.NFC.String(text), said.RecordID)
				for _, typed := range []string{text, norm.NFD.String(text), strings.ToUpper(text), strings.ToLower(text), cases.Fold().String(text), " " + text + "\u200b "} {
					page, err := f.Records.SearchWorkOrders(ctx, ann, records.WorkOrderSearch{Text: typed}, "", 200)
					if err != nil || !slices.ContainsFunc(page.Items, func(w records.WorkOrderItem) bool { return w.ID == created.RecordID }) {
						t.Errorf("%+q does not find the work order %+q: %v", typed, text, err)
					}
					nodes, err := f.Inventory.SearchNodes(ctx, ann, inventory.NodeSearch{Text: typed})
					if err != nil || len(nodes) == 0 || nodes[0].ID != f.ID("annex") {
						t.Errorf("%+q does not find the node %+q: %v", typed, text, err)
					}
					teams, err := f.People.TeamsForPerson(ctx, ann, lists.NameFilter{Search: typed})
					if err != nil || len(teams) != 1 {
						t.Errorf("%+q does not find the team %+q: %v", typed, text, err)
					}
					found, err := f.People.ListForPerson(ctx, ann, "", people.PersonFilter{NameFilter: lists.NameFilter{Search: typed}})
					if err != nil || !slices.ContainsFunc(found, func(p people.PersonSummary) bool { return p.ID == f.ID("bob") }) {
						t.Errorf("%+q does not find the person %+q: %v", typed, text, err)
					}
					feedback, err := f.Records.FeedbackForPerson(ctx, ann, records.FeedbackFilter{Text: typed}, "", 200)
					if err != nil || !slices.ContainsFunc(feedback.Data, func(r models.FeedbackRecord) bool { return r.ID == said.RecordID }) {
						t.Errorf("%+q does not find the feedback %+q: %v", typed, text, err)
					}
					log, err := f.Pages.LogRecords(ctx, ann, "", pages.LogFilter{ActorName: typed})
					if err != nil || !slices.ContainsFunc(log.Records, func(r pages.LogRecord) bool { return r.RecordID == said.RecordID }) {
						t.Errorf("%+q does not find what %+q did: %v", typed, text, err)
					}
				}
			})
		})
	}
}

// Two people of an organization have no address that counts as the same, whatever the locale of the database.
func TestAddressesAreComparedInEveryLocale(t *testing.T) {
	t.Parallel()
	for name, locale := range servicetest.Locales {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := servicetest.NewInLocale(t, locale)
			ann := servicetest.Person(t, f, "ann")
			invite := func(email string) (people.PersonAccess, error) {
				person, _, err := f.People.InvitePerson(t.Context(), ann, store.NoKey, f.Acme.OrganizationID, people.Invitation{Email: email, Name: "Someone"})
				return person, err
			}
			first, err := invite("Örjan.Iğdır@acme.example.com")
			if err != nil {
				t.Fatal(err)
			}
			for _, same := range []string{"örjan.iğdır@acme.example.com", norm.NFD.String("ÖRJAN.IĞDıR@ACME.example.com")} {
				again, err := invite(same)
				if err != nil || again.ID != first.ID { // an invitation that was not accepted is renewed
					t.Errorf("%q is %s, not %s: %v", same, again.ID, first.ID, err)
				}
			}
			if _, err := f.People.ChangePersonEmail(t.Context(), ann, store.NoKey, f.ID("bob"), "ÖRJAN.iğdır@acme.example.com"); models.CodeOf(err) != models.CodeValidationFailed {
				t.Errorf("someone else gets the address: %v", err)
			}
		})
	}
}
