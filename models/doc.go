// Package models holds what the service is about: the records, their states and
// the moves between them, scopes and permission grants, event types, the codes
// of every refusal, and the migrations of the schema that keeps them.
//
// It reads like the specification and decides what can be decided without
// looking anything up: whether a status allows an operation, which events a
// move sends, which names are known, how long a text may be. The record types
// carry GORM tags because they are rows; that is the only framework known here.
//
// What flows in: plain values. What flows out: plain values and *Error. The
// package knows no HTTP, no SQL beyond migrations/, no Temporal, no clock and
// no random source of its own: whoever makes an id hands both over.
package models
