// Package consoletest opens the console in a real browser.
//
// NewSite serves the console with its own database and people (service/servicetest), whose
// passwords are Password. Site.Browser opens a tab of headless Chromium, with or without
// scripts; Open opens one for a console that runs elsewhere (the journeys of e2e). What a
// browser should show is waited for. TabTo, SkipToContent, Type, Enter and Space use only the
// keyboard. Check looks at the page as it is in light and dark at 1280, 390 and 320 px: nothing
// scrolls sideways, the browser has reported no error and nothing that the
// Content-Security-Policy blocked, and, at 1280 and 320 px, axe-core finds nothing against
// WCAG 2.2 AA. It takes a second, so each template is checked once (TestEveryPageIsAccessible of
// the console); tests with other content use CheckWidth.
//
// All tabs of a test program share one process of Chromium, each with its own cookies; Run
// keeps it between the tests.
// Its program is CHROMIUM, or the first of the usual programs on PATH, Chromium's headless shell
// before the others. Without it a test fails with an error that names the package to install.
//
// Only tests import this package.
package consoletest
