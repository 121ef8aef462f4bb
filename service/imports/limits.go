package imports

import (
	"math"
	"unicode/utf8"

	"millwright/models"
)

// checkLimits reports strings and numbers that the schema does not allow.
func (f *importFile) checkLimits(problems *FileError) {
	text := func(kind, key, field string, value *string, least, most int) {
		if value == nil {
			return
		}
		if n := utf8.RuneCountInString(*value); n < least || n > most {
			problems.add("%s %q: %s has %d to %d characters", kind, key, field, least, most)
		} else if least > 0 && models.IsBlank(*value) {
			problems.add("%s %q: %s is blank", kind, key, field)
		}
	}
	name := func(kind, key string, value *string) { text(kind, key, "name", value, 1, models.MaxName) }
	actorName := func(kind, key string, value *string) {
		if name(kind, key, value); value != nil && models.IsReservedName(*value) {
			problems.add("%s %q: %s", kind, key, models.ReservedNameRule)
		}
	}
	name(keyOrganization, f.Organization.Key, f.Organization.Name)
	f.checkPlan(problems)
	for _, d := range f.PermissionDefinitions {
		name(keyDefinition, d.Key, d.Name)
	}
	for _, d := range f.OrganizationDefinitions {
		name(keyOrganizationDefinition, d.Key, d.Name)
	}
	for _, p := range f.People {
		actorName(keyPerson, p.Key, p.Name)
	}
	for _, t := range f.Teams {
		actorName(keyTeam, t.Key, t.Name)
	}
	for _, n := range f.nodes {
		name(keyNode, n.Key, n.Name)
		text(keyNode, n.Key, "description", n.Description, 0, models.MaxDescription)
		text(keyNode, n.Key, "external_id", n.ExternalID, 1, models.MaxExternalID)
	}
	for _, form := range f.Forms {
		name(keyForm, form.Key, form.Name)
		for _, q := range form.Questions {
			text(keyQuestion, q.Key, "label", q.Label, 1, models.MaxLabel)
			for _, o := range q.Options {
				text(keyOption, o.Key, "label", o.Label, 1, models.MaxLabel)
			}
		}
	}
	for _, i := range f.Integrations {
		actorName(keyIntegration, i.Key, i.Name)
	}
}

func (f *importFile) checkPlan(problems *FileError) {
	plan := f.Organization.Plan
	if plan == nil {
		return
	}
	number := func(field string, value *int, least int) {
		if value != nil && (*value < least || *value > math.MaxInt32) {
			problems.add("%s %q: plan.%s is %d to %d", keyOrganization, f.Organization.Key, field, least, math.MaxInt32)
		}
	}
	if plan.Name != nil && models.IsBlank(*plan.Name) {
		problems.add("%s %q: plan.name is blank", keyOrganization, f.Organization.Key)
	}
	number("calls_per_minute", plan.CallsPerMinute, 1)
	number("integrations", plan.Integrations, 0)
}
