package imports_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"millwright/service/imports"
	"millwright/service/servicetest"
)

// Every text of a file that must show something is rejected if it is blank. Keys and names
// of other entries are covered by key; descriptions and telephone numbers may be blank.
func TestBlankTextsOfAFile(t *testing.T) {
	f := servicetest.New(t)
	const file = `
organization: {key: KEY, name: NAME, plan: {name: PLAN, calls_per_minute: 10, integrations: 1}}
permission_definitions: [{key: all, name: DEFINITION, grants: []}]
organization_permission_definitions: [{key: own, name: OWN, grants: []}]
people: [{key: ann, name: PERSON, email: EMAIL}]
teams: [{key: crew, name: TEAM}]
inventory: [{key: hq, kind: location, name: NODE, external_id: CODE, children: [{key: ahu1, kind: equipment, name: CHILD}]}]
forms: [{key: form, name: FORM, questions: [{key: q1, label: LABEL, type: single_choice, options: [{key: QKEY, label: OPTION}]}]}]
integrations: [{key: erp, name: INTEGRATION, scopes: [], webhooks: [{key: hook, url: URL, events: []}]}]
`
	fill := func(field, text string) []byte {
		values := map[string]string{"EMAIL": "ann@tiny.example.com", "URL": "https://erp.example.com/hook"}
		var pairs []string
		for _, name := range strings.FieldsFunc(file, func(r rune) bool { return r < 'A' || r > 'Z' }) {
			value := values[name]
			if value == "" {
				value = strings.ToLower(name)
			}
			if name == field {
				value = text
			}
			pairs = append(pairs, ": "+name, ": "+strconv.Quote(value))
		}
		return []byte(strings.NewReplacer(pairs...).Replace(file))
	}
	servicetest.Must(t, servicetest.ErrorOf(f.Imports.Compare(t.Context(), fill("", ""))))
	for field, complaint := range map[string]string{
		"KEY": "a organization has no key", "NAME": `organization "key": name is blank`, "PLAN": `organization "key": plan.name is blank`,
		"DEFINITION": `permission definition "all": name is blank`, "OWN": `organization permission definition "own": name is blank`,
		"PERSON": `person "ann": name is blank`, "EMAIL": `person "ann": the e-mail address is malformed`,
		"TEAM": `team "crew": name is blank`, "NODE": `inventory node "hq": name is blank`, "CODE": `inventory node "hq": external_id is blank`,
		"CHILD": `inventory node "ahu1": name is blank`, "FORM": `form "form": name is blank`, "LABEL": `question "q1": label is blank`,
		"QKEY": "a option has no key", "OPTION": `option "qkey": label is blank`, "INTEGRATION": `integration "erp": name is blank`, "URL": `webhook "hook": `,
	} {
		for name, text := range servicetest.Invisible {
			t.Run(field+" of "+name, func(t *testing.T) {
				_, err := f.Imports.Run(t.Context(), fill(field, text))
				if _, rejected := errors.AsType[*imports.FileError](err); !rejected || !strings.Contains(fmt.Sprint(err), complaint) {
					t.Errorf("%v, want %q", err, complaint)
				}
			})
		}
	}
}
