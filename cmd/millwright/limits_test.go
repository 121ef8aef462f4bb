package main

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/webhook"
)

// Package webhook imports nothing of the product, and the settings' defaults are
// struct tags, so both repeat limits of package models.
func TestLimitsAgree(t *testing.T) {
	setRequired(t)
	s, err := loadSettings()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name      string
		got, want time.Duration
	}{
		{"webhook.Tolerance", webhook.Tolerance, models.SignatureTolerance},
		{"webhook.DefaultTimeout", webhook.DefaultTimeout, models.WebhookResponseTimeout},
		{"WEBHOOK_RESPONSE_TIMEOUT", s.ResponseTimeout, models.WebhookResponseTimeout},
		{"WEBHOOK_SHUTOFF_AFTER", s.ShutOffAfter, models.DefaultShutOffAfter},
	} {
		if tt.got != tt.want {
			t.Errorf("%s is %s, want %s", tt.name, tt.got, tt.want)
		}
	}
	if !slices.Equal(s.RetrySchedule, models.DefaultRetrySchedule) {
		t.Errorf("WEBHOOK_RETRY_SCHEDULE is %v, want %v", s.RetrySchedule, models.DefaultRetrySchedule)
	}
	if n := len(models.DefaultRetrySchedule) + 1; n != models.DeliveryAttempts {
		t.Errorf("the default schedule has %d attempts, want %d", n, models.DeliveryAttempts)
	}
	if webhook.MaxKeptBody != models.MaxKeptResponse {
		t.Errorf("webhook.MaxKeptBody is %d, want %d", webhook.MaxKeptBody, models.MaxKeptResponse)
	}
}

// The request bodies' bounds are struct tags of package api, so they repeat limits of
// package models as well.
func TestTheAPIDocumentsTheLimits(t *testing.T) {
	printed, err := run(t, "openapi")
	if err != nil {
		t.Fatal(err)
	}
	type schema struct {
		MaxLength, MaxItems, Default any
	}
	var document struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]schema }
		}
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name   string
				Schema schema
			}
		}
	}
	if err := json.Unmarshal([]byte(printed), &document); err != nil {
		t.Fatal(err)
	}
	for property, want := range map[string]int{
		"NewWorkOrder.title":         models.MaxTitle,
		"WorkOrderPatch.title":       models.MaxTitle,
		"NewFeedback.subject":        models.MaxTitle,
		"NewWorkOrder.description":   models.MaxDescription,
		"NewFeedback.description":    models.MaxDescription,
		"NewWorkOrder.external_id":   models.MaxExternalID,
		"NewFeedback.external_id":    models.MaxExternalID,
		"Cancellation.reason":        models.MaxCancelReason,
		"NewWorkOrder.assignees":     models.MaxAssignees,
		"Assignment.consultants":     models.MaxAssignees,
		"GivenAnswers.answers":       models.MaxAnswers,
		"WorkOrderPatch.description": models.MaxDescription,
	} {
		name, field, _ := strings.Cut(property, ".")
		bounds := document.Components.Schemas[name].Properties[field]
		if got := cmp.Or(bounds.MaxLength, bounds.MaxItems); got != float64(want) {
			t.Errorf("%s is at most %v, want %d", property, got, want)
		}
	}
	for _, parameter := range document.Paths["/work-orders"]["get"].Parameters {
		if parameter.Name == "limit" && parameter.Schema.Default != float64(models.DefaultPageSize) {
			t.Errorf("the default limit is %v, want %d", parameter.Schema.Default, models.DefaultPageSize)
		}
	}
}
