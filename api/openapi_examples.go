package api

import (
	"time"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/lists"
)

// The examples share one story: an ERP orders a new filter for an air handling
// unit, and the front desk reports a flickering light.
const (
	exampleOrganization = "idn_01jd8q4v6cf5e8hbbfwj0zq3ta"
	exampleERP          = "idn_01jd8q4v6cf5e8hbbfwj0zq3td"
	exampleAnn          = "idn_01jd8q4v6cf5e8hbbfwj0zq3tk"
	exampleBob          = "idn_01jd8q4v6cf5e8hbbfwj0zq3tm"
	exampleCrew         = "idn_01jd8q4v6cf5e8hbbfwj0zq3tn"
	exampleLocation     = "loc_01jd8q4v6cf5e8hbbfwj0zq3tb"
	exampleSystem       = "sys_01jd8q4v6cf5e8hbbfwj0zq3tb"
	exampleEquipment    = "eqp_01jd8q4v6cf5e8hbbfwj0zq3tb"
	exampleSubEquipment = "sub_01jd8q4v6cf5e8hbbfwj0zq3tb"
	exampleForm         = "frm_01jd8q4v6cf5e8hbbfwj0zq3tc"
	exampleQuestion     = "qst_01jd8q4v6cf5e8hbbfwj0zq3tc"
	exampleQuestion2    = "qst_01jd8q4v6cf5e8hbbfwj0zq3te"
	exampleOption       = "opt_01jd8q4v6cf5e8hbbfwj0zq3tc"
	exampleOption2      = "opt_01jd8q4v6cf5e8hbbfwj0zq3te"
	exampleWorkOrder    = "wo_01jd8q4v6cf5e8hbbfwj0zq3tk"
	exampleFeedback     = "iss_01jd8q4v6cf5e8hbbfwj0zq3tk"
	exampleEvent        = "evt_01jd8q4v6cf5e8hbbfwj0zq3tk"
	exampleRequest      = "req_01jd8q4v6cf5e8hbbfwj0zq3tk"
	exampleETag         = `"n4bQgYhMfWWaL-qgxVrQ"`
	exampleCursor       = "AX0AAAGTUXK2vGZpbHRlcnMtYW5kLXBvc2l0aW9u"
	exampleToken        = "eyJhbGciOiJIUzI1NiIsImtpZCI6ImsxIiwidHlwIjoiYXQrand0In0.eyJqdGkiOiJ0b2tfMDEifQ.c2lnbmF0dXJl" //nolint:gosec // not a valid token
	exampleClient       = "cli_01jd8q4v6cf5e8hbbfwj0zq3tk"
	exampleSecret       = "the-secret-shown-once"
)

// exampleAt returns a time of the story, in minutes after its beginning.
func exampleAt(minutes int) models.Time {
	return models.TimeOf(time.Date(2026, time.March, 2, 12, 15+minutes, 30, 0, time.UTC))
}

func workOrderExample() models.WorkOrderRecord {
	target := models.TimeOf(time.Date(2026, time.March, 5, 12, 0, 0, 0, time.UTC))
	return models.WorkOrderRecord{
		ID: exampleWorkOrder, OrganizationID: exampleOrganization, Number: 1042, InventoryID: exampleEquipment,
		Inventory: models.NodeReference{
			ID: exampleEquipment, Kind: models.NodeEquipment, Name: "AHU 1", ExternalID: new("AHU-1"),
			Path: []models.PathNode{
				{ID: exampleLocation, Kind: models.NodeLocation, Name: "Headquarters"},
				{ID: exampleSystem, Kind: models.NodeSystem, Name: "HVAC"},
			},
		},
		Title: "Replace filter", Description: new("The pressure drop is above the limit."), Priority: models.PriorityMedium,
		TargetDate: &target, FormID: new(exampleForm), Assignees: []string{exampleCrew, exampleERP}, Consultants: []string{exampleAnn},
		ExternalID: new("ERP-7781"), Status: models.StatusOf(models.StatusOpen), CreatedBy: exampleERP,
		CreatedAt: exampleAt(0), ChangedAt: exampleAt(0),
	}
}

// workOrderIn returns the story's work order in a later status.
func workOrderIn(status models.WorkOrderStatus, minutes int) models.WorkOrderRecord {
	w := workOrderExample()
	w.Status, w.ChangedAt = models.StatusOf(status), exampleAt(minutes)
	if status == models.StatusComplete {
		w.Consultants, w.CompletedAt = []string{}, &w.ChangedAt
	}
	if status == models.StatusCancelled {
		w.CancelReason, w.CancelledAt = new("Duplicate of number 1041"), &w.ChangedAt
	}
	return w
}

// withPeople returns the work order as a token with people:read sees it.
func withPeople(w models.WorkOrderRecord) models.WorkOrderRecord {
	w.People = []models.NamedIdentity{
		{IdentityID: exampleCrew, Kind: models.KindTeam, Name: "Electricians"},
		{IdentityID: exampleAnn, Kind: models.KindPerson, Name: "Ann Field", Email: new("ann@example.com"), Phone: new("+12025550101")},
		{IdentityID: exampleERP, Kind: models.KindIntegration, Name: "ERP"},
	}
	return w
}

func feedbackExample() models.FeedbackRecord {
	return models.FeedbackRecord{
		ID: exampleFeedback, OrganizationID: exampleOrganization, InventoryID: exampleLocation, Subject: "The light flickers",
		Inventory: models.NodeReference{
			ID: exampleLocation, Kind: models.NodeLocation, Name: "Headquarters", ExternalID: new("HQ"), Path: []models.PathNode{},
		},
		Description: new("In the corridor of the second floor."), ExternalID: new("DESK-19"),
		Status: models.StatusOf(models.FeedbackOpen), CreatedBy: exampleERP, CreatedAt: exampleAt(0), ChangedAt: exampleAt(0),
	}
}

func resolvedExample() models.FeedbackRecord {
	f := feedbackExample()
	f.Status, f.ChangedAt = models.StatusOf(models.FeedbackResolved), exampleAt(40)
	f.ResolvedAt = &f.ChangedAt
	return f
}

func nodeExample(kind models.NodeKind) models.NodeRecord {
	below := func(id, name, external, parent string, ancestors ...string) models.NodeRecord {
		return models.NodeRecord{
			ID: id, Kind: kind, ParentID: &parent, Ancestors: append(ancestors, parent), Name: name,
			ExternalID: &external, CreatedAt: exampleAt(0), ChangedAt: exampleAt(0),
		}
	}
	switch kind {
	case models.NodeSystem:
		return below(exampleSystem, "HVAC", "HVAC", exampleLocation)
	case models.NodeEquipment:
		unit := below(exampleEquipment, "AHU 1", "AHU-1", exampleSystem, exampleLocation)
		unit.Description = new("Supply air of the north wing")
		return unit
	case models.NodeSubEquipment:
		return below(exampleSubEquipment, "Fan 1", "AHU-1-F1", exampleEquipment, exampleLocation, exampleSystem)
	default:
		return models.NodeRecord{
			ID: exampleLocation, Kind: models.NodeLocation, Ancestors: []string{}, Name: "Headquarters",
			ExternalID: new("HQ"), CreatedAt: exampleAt(0), ChangedAt: exampleAt(0),
		}
	}
}

func questionExamples() []models.QuestionRecord {
	return []models.QuestionRecord{
		{
			ID: exampleQuestion, Label: "Filter state", Type: models.QuestionSingleChoice, Required: true,
			Options: []models.QuestionOptionRecord{{ID: exampleOption, Label: "OK"}, {ID: exampleOption2, Label: "Dirty"}},
		},
		{ID: exampleQuestion2, Label: "Pressure drop in pascals", Type: models.QuestionDecimal, Options: []models.QuestionOptionRecord{}},
	}
}

func formExample() models.FormRecord {
	return models.FormRecord{
		ID: exampleForm, Name: "Filter inspection", Questions: questionExamples(), CreatedAt: exampleAt(0), ChangedAt: exampleAt(0),
	}
}

func answersExample() models.AnswersRecord {
	answered, questions := exampleAt(30), questionExamples()
	return models.AnswersRecord{
		WorkOrderID: exampleWorkOrder,
		Form:        &models.AnswersForm{ID: exampleForm, Name: "Filter inspection"},
		Questions: []models.AnsweredRecord{
			{QuestionRecord: questions[0], Value: exampleOption2, AnsweredAt: &answered, AnsweredBy: new(exampleERP)},
			{QuestionRecord: questions[1]},
		},
	}
}

func personExample() models.PersonRecord {
	return models.PersonRecord{
		ID: exampleAnn, Name: "Ann Field", Email: "ann@example.com", Phone: new("+12025550101"), Active: true,
		Teams: []string{exampleCrew}, CreatedAt: exampleAt(0), ChangedAt: exampleAt(0),
	}
}

func teamExample() models.TeamRecord {
	return models.TeamRecord{
		ID: exampleCrew, Name: "Electricians", Active: true, Members: []string{exampleAnn, exampleBob}, CreatedAt: exampleAt(0), ChangedAt: exampleAt(0),
	}
}

func meExample() access.Me {
	return access.Me{
		Integration: access.MeNamed{ID: exampleERP, Name: "ERP"}, IdentityID: exampleERP,
		Organization: access.MeOrg{ID: exampleOrganization, Name: "Acme Facilities"},
		Scopes:       models.Scopes{models.ScopeWorkOrdersRead, models.ScopeWorkOrdersWrite},
		RateLimit:    access.MeRate{Limit: 600, WindowSeconds: 60}, Plan: "pro",
	}
}

// pages returns the examples of a list: a page that is not the last, and a page of changes.
func pages[T any](record T) map[string]any {
	return map[string]any{
		"page":    lists.Page[T]{Data: []T{record}, HasMore: true, NextCursor: exampleCursor},
		"changes": lists.Page[T]{Data: []T{record}, SyncToken: exampleCursor},
	}
}
