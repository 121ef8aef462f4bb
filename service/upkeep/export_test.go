package upkeep

import "millwright/service/store"

// The query of Backlog, for tests that explain it.
var (
	BacklogQuery = backlogQuery
	BacklogArgs  = backlogArgs
)

// OpenRecordStatements are the pages of OpenRecords, which a test explains.
var OpenRecordStatements = map[string]string{
	"work_orders": openRecords[store.TargetWorkOrder].query, "feedback": openRecords[store.TargetFeedback].query,
}

// Expiries is the number of tables and works that housekeeping looks at.
var Expiries = len(expiries)
