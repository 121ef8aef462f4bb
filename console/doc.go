// Package console serves the app's pages below /console.
package console
