package service

// The question of Backlog, for tests that look at its plan.
var (
	BacklogQuery = backlogQuery
	BacklogArgs  = backlogArgs
)
