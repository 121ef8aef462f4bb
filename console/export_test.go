package console

import "strings"

// Route is a route of the console, for tests that try all of them.
type Route struct{ Method, Path string }

// Routes returns the routes of the pages, without the assets.
func (c *Console) Routes() []Route {
	var routes []Route
	for _, r := range c.engine.Routes() {
		if !strings.HasPrefix(r.Path, Root+"/assets/") {
			routes = append(routes, Route{r.Method, r.Path})
		}
	}
	return routes
}

// NoticeTexts are the sentences of notices.
var NoticeTexts = noticeTexts

// DoneTexts are the messages after writes.
var DoneTexts = doneTexts

// ShortTime is how pages show a time.
var ShortTime = shortTime
