// Package integrations decides who may create, change and delete integrations and what they
// hold: credentials, scopes, owners, permissions on nodes.
//
// Inputs are an Actor and a Change; outputs are Records. Its table is
// integrations. It imports people, inventory, access and store.
package integrations
