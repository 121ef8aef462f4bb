package models

import (
	"slices"
	"strings"
)

// Scope is what a token allows (api.md 5.5).
type Scope string

// The scopes.
const (
	ScopeInventoryRead   Scope = "inventory:read"
	ScopeWorkOrdersRead  Scope = "work_orders:read"
	ScopeWorkOrdersWrite Scope = "work_orders:write"
	ScopeIssuesRead      Scope = "issues:read"
	ScopeIssuesWrite     Scope = "issues:write"
	ScopeFormsRead       Scope = "forms:read"
	ScopeFilesRead       Scope = "files:read"
	ScopePeopleRead      Scope = "people:read"
)

// AllScopes lists every scope in the specification's order.
var AllScopes = []Scope{
	ScopeInventoryRead, ScopeWorkOrdersRead, ScopeWorkOrdersWrite, ScopeIssuesRead,
	ScopeIssuesWrite, ScopeFormsRead, ScopeFilesRead, ScopePeopleRead,
}

// Scopes is a set of scopes in a fixed order.
type Scopes []Scope

// Has reports whether the set holds the scope.
func (s Scopes) Has(scope Scope) bool { return slices.Contains(s, scope) }

// HasAll reports whether the set holds all of the others.
func (s Scopes) HasAll(others Scopes) bool {
	return !slices.ContainsFunc(others, func(o Scope) bool { return !s.Has(o) })
}

// Intersect returns the scopes that are in both sets, in the order of s.
func (s Scopes) Intersect(other Scopes) Scopes {
	both := Scopes{}
	for _, scope := range s {
		if other.Has(scope) {
			both = append(both, scope)
		}
	}
	return both
}

// String returns the scopes separated by spaces, as in OAuth.
func (s Scopes) String() string { return strings.Join(s.Strings(), " ") }

// Strings returns the scopes as plain strings.
func (s Scopes) Strings() []string {
	names := make([]string, len(s))
	for i, scope := range s {
		names[i] = string(scope)
	}
	return names
}

// ParseScopes returns what String wrote as ScopesOf does. Only spaces separate scopes (RFC 6749
// section 3.3).
func ParseScopes(text string) (Scopes, string) {
	return ScopesOf(slices.DeleteFunc(strings.Split(text, " "), func(name string) bool { return name == "" }))
}

// ScopesOf returns the names as scopes, in the specification's order and without
// duplicates. If a name is not a scope, it returns nil and the first such name.
func ScopesOf(names []string) (Scopes, string) {
	for _, name := range names {
		if !slices.Contains(AllScopes, Scope(name)) {
			return nil, name
		}
	}
	scopes := Scopes{}
	for _, scope := range AllScopes {
		if slices.Contains(names, string(scope)) {
			scopes = append(scopes, scope)
		}
	}
	return scopes, ""
}
