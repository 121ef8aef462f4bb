package console

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"millwright/service/webhooks"
)

// redeliverOne makes one delivery due now.
func (c *Console) redeliverOne(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	id := r.Param("id")
	_, err = c.service.Webhooks.RedeliverDelivery(r.ctx(), r.actor(), f.key(r), id)
	return r.finish(f, err, outcome{to: returnTo(f.Value("back"), Root+"/deliveries/"+url.PathEscape(id)), done: "redelivered"})
}

// redeliverSelected makes the deliveries due now that were selected in a list.
func (c *Console) redeliverSelected(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	back := returnTo(f.Value("back"), Root+"/deliveries")
	if len(f.Values["delivery"]) == 0 {
		return r.done(back, "none-selected")
	}
	released, err := c.service.Webhooks.RedeliverSelected(r.ctx(), r.actor(), f.key(r), f.Values["delivery"])
	done := "redelivered"
	if released.Due == 0 && released.Expired > 0 {
		done = "all-expired"
	}
	return r.finish(f, err, outcome{to: back, done: withExpired(done, released)})
}

// withExpired returns a key of doneTexts with the number of deliveries that were left out.
func withExpired(done string, released webhooks.Released) string {
	if released.Expired == 0 {
		return done
	}
	return done + "." + strconv.Itoa(released.Expired)
}

// returnTo is the URL of the list page that a form was on, as it was sent, or the default.
func returnTo(back, otherwise string) string {
	if back = localPath(back); strings.HasPrefix(back, Root+"/") {
		return back
	}
	return otherwise
}

// confirmRedelivery asks whether to redeliver all that match, with their number.
func (c *Console) confirmRedelivery(r *request) error {
	search, parameters, err := r.deliverySearch()
	if err != nil {
		return err
	}
	counts, err := c.service.Webhooks.CountMatching(r.ctx(), r.actor(), search)
	if err != nil {
		return err
	}
	view := confirmView{
		Title: "Redeliver all that match", Back: linkTo("/deliveries", parameters...),
		Action: linkTo("/deliveries/redeliver-matching", parameters...),
	}
	n, more := 0, false
	for _, count := range counts {
		if count.Enabled {
			n, more = n+count.N-count.Pending, more || count.More
		}
		view.Effects = append(view.Effects, countSentence(count))
	}
	switch {
	case n > 0:
		view.Button = "Redeliver " + atLeast(n, more)
		view.Effects = append(view.Effects, "They go out in the order of their events, with the records as they are then. This page does not wait for it.")
	case len(counts) == 0:
		view.Effects, view.BackText = []string{"Nothing matches the filters, so nothing would be sent."}, "Back"
	default:
		view.Effects, view.BackText = append(view.Effects, "Nothing can be redelivered now."), "Back"
	}
	return r.confirm(view)
}

// countSentence describes the effect of redelivering at one address.
func countSentence(count webhooks.MatchCount) string {
	sentence := fmt.Sprintf("%s to %s.", atLeast(count.N-count.Pending, count.More), count.URL)
	if !count.Enabled {
		return sentence + " This address is off, so nothing is sent to it: turn it on first."
	}
	if count.Delivered > 0 {
		sentence += " " + plural(count.Delivered, "was", "were") + " delivered before; the receiver gets them again, with the same event ids."
	}
	if count.Pending > 0 {
		sentence += " " + plural(count.Pending, "other waits", "others wait") + " for the first attempt anyway."
	}
	return sentence
}

// atLeast writes a number of deliveries that may be larger.
func atLeast(n int, more bool) string {
	if more {
		return fmt.Sprintf("%d or more deliveries", n)
	}
	return plural(n, "delivery", "deliveries")
}

// redeliverMatching orders the redelivery of all that match.
func (c *Console) redeliverMatching(r *request) error {
	search, parameters, err := r.deliverySearch()
	if err != nil {
		return err
	}
	return r.submit(outcome{to: linkTo("/deliveries", parameters...), done: "redelivering"}, func(f form) error {
		return errorOf(c.service.Webhooks.RedeliverMatching(r.ctx(), r.actor(), f.key(r), search))
	})
}
