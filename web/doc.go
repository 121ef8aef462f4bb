// Package web is what the API and the console have in common about HTTP: the address
// that a call is counted against, the status of abandoned requests, and compression.
//
// It imports no other package of the product, and knows no records.
package web
