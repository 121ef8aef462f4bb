// Package pages is views of the console across rooms: the log, an integration with everything it
// has, whether an integration can see a record and why not, what taking a permission away does.
//
// Inputs are an Actor and ids; outputs are views. It has no tables and only reads. It
// imports every room below it.
package pages
