package console_test

import (
	"time"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// reported are work orders that the demo's ERP creates: a node's key, what is to be done, how
// urgent it is, and by whom.
var reported = []struct {
	node, title string
	priority    models.Priority
	worker      string
}{
	{"acute_tower_ahu_01", "Replace the supply filters", models.PriorityHigh, "hvac_team"},
	{"acute_tower_lft_01", "Door operator closes too slowly", models.PriorityMedium, "polar-lifts"},
	{"acute_tower_gen_01", "Monthly test run of the standby generator", models.PriorityMedium, "electricians"},
	{"acute_tower_ups_01", "Battery string reports a weak block", models.PriorityHigh, "electricians"},
	{"acute_tower_020", "Lamp over the MRI console flickers", models.PriorityLow, "henrik_nyberg"},
	{"acute_tower_chl_01", "Compressor 2 trips on high pressure", models.PriorityHigh, "hvac_team"},
	{"acute_tower_fap_01", "Loop 7 shows an earth fault", models.PriorityHigh, "fire_safety_team"},
	{"acute_tower_310", "Radiator in room 12 stays cold", models.PriorityMedium, "karin_ostlund"},
	{"acute_tower_cwp_02", "Mechanical seal drips", models.PriorityMedium, "hvac_team"},
	{"acute_tower_vac_01", "Vacuum pump 1: change the oil", models.PriorityLow, "plumbing_team"},
	{"acute_tower_msb_01", "Handle of the incoming breaker is loose", models.PriorityMedium, "electricians"},
	{"acute_tower_ahu_02", "Humidifier cylinder is due", models.PriorityMedium, "hvac_team"},
	{"acute_tower_120", "Nurse call in bay 4 does not reset", models.PriorityHigh, "henrik_nyberg"},
	{"acute_tower_bst_01", "Booster pump 2 is noisy", models.PriorityMedium, "plumbing_team"},
	{"acute_tower_030", "Automatic door of the lobby sticks", models.PriorityMedium, "henrik_nyberg"},
	{"acute_tower_spp_01", "Weekly run of the sprinkler pump", models.PriorityNone, "fire_safety_team"},
	{"acute_tower_lft_04", "Annual load test", models.PriorityLow, "polar-lifts"},
	{"acute_tower_cal_02", "Anode of the calorifier is due", models.PriorityLow, "plumbing_team"},
	{"acute_tower_110", "Canopy light of theatre 1 fails", models.PriorityHigh, "henrik_nyberg"},
	{"acute_tower_tx_01", "Cooling fan of the transformer hums", models.PriorityLow, "electricians"},
}

// reportedTo are those who do what is reported to a team.
var reportedTo = map[string]string{
	"hvac_team": "ravi_subramaniam", "electricians": "piotr_zielinski", "fire_safety_team": "erik_dahlgren", "plumbing_team": "deepa_nair",
	"polar-lifts": "oskar_lund", "henrik_nyberg": "henrik_nyberg", "karin_ostlund": "karin_ostlund",
}

// routine is the work of the two weeks before, and who does it.
var routine = []struct{ creator, node, title, worker, person string }{
	{"priya_raghavan", "acute_tower_ahu_03", "Check the fan belt", "hvac_team", "ravi_subramaniam"},
	{"tom_ashworth", "library", "Reading room is too warm", "hvac_team", "mei_lin_tan"},
	{"elina_korhonen", "central_kitchen", "Degrease the extract hood", "cleaning_team", "sunita_joshi"},
	{"priya_raghavan", "acute_tower_cal_01", "Weekly temperature check", "plumbing_team", "owen_griffiths"},
	{"tom_ashworth", "university_grounds", "Grit the paths", "grounds_team", "lars_viken"},
	{"priya_raghavan", "acute_tower_fap_01", "Weekly fire alarm test", "fire_safety_team", "rachel_thornton"},
	{"samuel_okafor", "outpatient_clinic", "Emergency lighting, monthly test", "electricians", "callum_reid"},
	{"priya_raghavan", "acute_tower_lft_02", "Light curtain fails at level 3", "polar-lifts", "kavita_rao"},
	{"samuel_okafor", "energy_centre", "Top up the water treatment", "plumbing_team", "noor_haddad"},
}

// planRoutine plans work of two weeks, most of which is done within the day.
func (d *demo) planRoutine() {
	n := 0
	for day := 3; day <= 17; day++ {
		d.at(demoTime(day, 20, 0), d.deliverToERP)
		for range 2 + day%3 {
			job, created := routine[n%len(routine)], demoTime(day, 7+n%7, n*17%60)
			done := created.Add(time.Duration(60+n*47%240) * time.Minute)
			if n%6 == 5 {
				done = done.Add(72 * time.Hour)
			}
			n++
			if w := created.Weekday(); w == time.Saturday || w == time.Sunday {
				continue
			}
			var id string
			d.at(created, func() {
				id = d.create(demoWork{
					creator: job.creator, node: job.node, title: job.title, priority: models.PriorityLow, due: created.Add(24 * time.Hour).Truncate(time.Hour), workers: []string{job.worker},
				})
			})
			if done.Before(demoNow) {
				d.at(done, func() { d.complete(job.person, id) })
			}
		}
	}
}

// planStories plans the work orders that the pictures are of.
func (d *demo) planStories() {
	for when, work := range map[time.Time]demoWork{
		demoTime(16, 8, 10): {
			name: "inspection", creator: "priya_raghavan", node: "acute_tower_ahu_01", title: "Inspect AHU 01 before next week's theatre lists", form: "ahu_inspection",
			text:     "Theatres 1 and 2 complain about draughts.\nThe lists begin on Monday at 07:30; the unit may only stop between 18:00 and 05:00.",
			priority: models.PriorityHigh, due: demoTime(19, 16, 0), externalID: "NUH-2026-0312", workers: []string{"hvac_team"}, consultants: []string{"vikram_desai"},
		},
		demoTime(17, 10, 30): {
			name: "thermography", creator: "samuel_okafor", node: "acute_tower_msb_01", title: "Thermography of the main switchboard", form: "switchboard_thermography",
			text: "After the insurer's visit. Load of at least 40 %, please.", due: demoTime(20, 12, 0), workers: []string{"electricians"}, consultants: []string{"margaret_ellison"},
		},
		demoTime(16, 9, 45): {
			name: "chiller", creator: "karin_ostlund", node: "acute_tower_chl_02", title: "Change the oil of compressor 1", text: "The oil comes with the wholesaler's van on Thursday.",
			priority: models.PriorityMedium, due: demoTime(24, 17, 0), workers: []string{"hvac_team"},
		},
		demoTime(11, 14, 5): {
			creator: "jonas_lindqvist", node: "acute_tower_lft_03", title: "Agree the shutdown of lift 3 with the wards", priority: models.PriorityMedium, due: demoTime(17, 12, 0), workers: []string{"margaret_ellison"},
		},
		demoTime(13, 11, 20): {
			creator: "margaret_ellison", node: "outpatient_clinic", title: "Walk through the clinic before the insurer comes", priority: models.PriorityLow, due: demoTime(20, 10, 0), workers: []string{"margaret_ellison", "electricians"},
		},
		demoTime(16, 13, 35): {
			name: "ups", creator: "priya_raghavan", node: "acute_tower_ups_02", title: "Replace the battery string of UPS 2", priority: models.PriorityHigh, due: demoTime(27, 16, 0), workers: []string{"electricians"}, consultants: []string{"margaret_ellison"},
		},
		demoTime(17, 13, 15): {
			name: "test run", creator: "priya_raghavan", node: "acute_tower_gen_01", title: "Test run after the repair of the fuel pump", form: "generator_test", priority: models.PriorityHigh,
			due: demoTime(18, 14, 0), workers: []string{"callum_reid", "electricians"},
		},
		demoTime(18, 7, 40): {
			name: "tap", creator: "karin_ostlund", node: "acute_tower_310", title: "Tap in room 4 does not close", priority: models.PriorityMedium, due: demoTime(18, 16, 0), workers: []string{"karin_ostlund"},
		},
	} {
		d.at(when, func() { d.create(work) })
	}
	hold := func(person, work string) func() {
		return func() {
			_, err := d.Records.HoldWorkOrder(d.t.Context(), d.Viewer(person), store.NoKey, d.ID(work))
			d.check(err)
		}
	}
	d.at(demoTime(16, 9, 5), hold("ravi_subramaniam", "inspection"))
	d.at(demoTime(16, 18, 10), func() {
		_, err := d.Records.ResumeWorkOrder(d.t.Context(), d.Viewer("karin_ostlund"), store.NoKey, d.ID("inspection"))
		d.check(err)
	})
	d.at(demoTime(16, 21, 40), func() {
		d.answer("karin_ostlund", d.ID("inspection"), records.SaveAnswers, d.chosen("ahu_filter_state", "ahu_filter_replaced"), d.entered("ahu_filter_pressure", "238"),
			d.entered("ahu_supply_temperature", "20.5"), d.chosen("ahu_checked_parts", "ahu_part_belts", "ahu_part_bearings", "ahu_part_dampers"))
	})
	d.at(demoTime(16, 22, 5), func() { d.complete("karin_ostlund", d.ID("inspection")) })
	d.at(demoTime(18, 8, 25), func() {
		_, err := d.Records.ReviewWorkOrder(d.t.Context(), d.Viewer("vikram_desai"), store.NoKey, d.ID("inspection"),
			records.Review{Comment: "238 Pa is too much for new filters. Measure again with the fan at full speed, and check the seals of the filter frame."})
		d.check(err)
	})
	d.at(demoTime(18, 7, 55), func() {
		d.answer("arjun_mehta", d.ID("thermography"), records.CompleteWork, d.entered("thermo_load_percent", "46"), d.entered("thermo_hottest", "71.5"), d.entered("thermo_ambient", "24"),
			d.chosen("thermo_severity", "thermo_severity_plan"))
	})
	d.at(demoTime(18, 8, 40), func() {
		d.answer("callum_reid", d.ID("test run"), records.SaveAnswers, d.chosen("generator_load_test", "generator_test_off_load"), d.entered("generator_start_seconds", "8.4"))
	})
	d.at(demoTime(17, 15, 10), func() { d.complete("sofia_marchetti", d.ID("ups")) })
	d.at(demoTime(17, 8, 15), hold("liam_hargreaves", "chiller"))
}

// planFeedback plans what people and the building management system report.
func (d *demo) planFeedback() {
	for _, f := range []struct {
		at                                        time.Time
		name, by, node, subject, text, externalID string
	}{
		{demoTime(12, 9, 15), "", "oliver_bramley", "library", "Lights in the reading room flicker", "The row at the windows, since yesterday evening.", ""},
		{demoTime(13, 14, 50), "", "joanna_kowalska", "university_grounds", "Gate of the bin store does not lock", "", ""},
		{demoTime(16, 10, 5), "", "yusuf_demir", "laboratory_building", "Fume cupboard 3 alarms without a reason", "Twice this morning, for a minute each time. The sash was closed.", ""},
		{demoTime(17, 7, 20), "drip", "fatima_el_amrani", "acute_tower_310", "Tap in room 4 does not close", "It runs all the time, and the bed is needed tonight.", ""},
		{demoTime(17, 22, 14), "", "bms", "acute_tower_ahu_02", "Supply temperature out of range", "18.4 °C for 20 minutes; the set point is 21 °C.", "ALM-88213"},
		{demoTime(18, 3, 41), "", "bms", "acute_tower_cwp_01", "Motor temperature high", "96 °C; the limit is 90 °C.", "ALM-88240"},
		{demoTime(18, 7, 52), "leak", "nadia_petrov", "acute_tower_010", "Water drips from the ceiling of resuscitation bay 2", "It began after last night's rain. A bucket is under it, and the bay is closed.", ""},
	} {
		d.at(f.at, func() {
			in := records.NewFeedback{InventoryID: d.ID(f.node), Subject: f.subject}
			if f.text != "" {
				in.Description = &f.text
			}
			if f.externalID != "" {
				in.ExternalID = &f.externalID
			}
			created, err := d.Records.CreateFeedback(d.t.Context(), d.actor(f.by), store.NoKey, in)
			d.check(err)
			d.Acme.IDs["feedback "+f.name] = created.RecordID
			if f.name == "" {
				d.Acme.IDs["feedback "+f.subject] = created.RecordID
			}
		})
	}
	for when, resolved := range map[time.Time]struct{ by, feedback string }{
		demoTime(12, 15, 30): {"tom_ashworth", "feedback Lights in the reading room flicker"},
		demoTime(16, 9, 10):  {"tom_ashworth", "feedback Gate of the bin store does not lock"},
		demoTime(18, 7, 41):  {"priya_raghavan", "feedback drip"},
	} {
		d.at(when, func() {
			_, err := d.Records.ResolveFeedback(d.t.Context(), d.Viewer(resolved.by), store.NoKey, d.ID(resolved.feedback))
			d.check(err)
		})
	}
}

// planReports plans the last day: two more integrations are added, the ERP creates work orders
// and cancels some, and the addresses respond to the events.
func (d *demo) planReports(began time.Time) {
	d.at(began, func() {
		d.integrate("energy", "Energy dashboard", "https://energy.northfield.example.com/events")
		d.integrate("rooms", "Room booking", "https://booking.campus.example.com/millwright")
	})
	at := began
	// The last hour is quiet.
	for n := 0; at.Before(demoNow.Add(-75 * time.Minute)); n++ {
		job := reported[n%len(reported)]
		var id string
		d.at(at, func() {
			id = d.create(demoWork{creator: "erp", node: job.node, title: job.title, priority: job.priority, workers: []string{job.worker}})
		})
		if n%9 == 4 {
			d.at(at.Add(2*time.Minute), func() {
				_, err := d.Records.CancelWorkOrder(d.t.Context(), d.actor("erp"), store.NoKey, id, new("Reported twice"))
				d.check(err)
			})
		}
		d.at(at.Add(3*time.Minute), func() { d.deliverReport(n) })
		if done := at.Add(150 * time.Minute); n%9 != 4 && n%3 == 0 && done.Before(demoNow) {
			d.at(done, func() { d.complete(reportedTo[job.worker], id) })
		}
		at = at.Add(time.Duration(50+n*13%40) * time.Minute)
	}
	d.at(demoNow.Add(-30*time.Minute), d.deliverToERP)
	d.at(demoNow.Add(-10*time.Minute), func() { // an address that no event has reached
		hook, err := d.Webhooks.CreateWebhook(d.t.Context(), d.Viewer("margaret_ellison"), store.NoKey, d.ID("rooms"),
			webhooks.NewWebhook{URL: "https://booking.campus.example.com/closures", Events: []models.EventType{models.EventWorkOrderCreated}})
		d.check(err)
		d.Acme.IDs["closures_hook"] = hook.ID
	})
}
