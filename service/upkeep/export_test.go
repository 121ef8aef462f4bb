package upkeep

// The query of Backlog, for tests that explain it.
var (
	BacklogQuery = backlogQuery
	BacklogArgs  = backlogArgs
)

// Expiries is the number of tables and works that housekeeping looks at.
var Expiries = len(expiries)
