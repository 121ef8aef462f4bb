package console

import "millwright/models"

// workOrderMarks show the statuses of work orders.
var workOrderMarks = map[models.WorkOrderStatus]stateMark{
	models.StatusOpen: {"muted", "wait", "Open"}, models.StatusInProgress: {"good", "wait", "In progress"},
	models.StatusSentToInspection: {"warn", "user", "In review"}, models.StatusBackFromInspection: {"warn", "back", "Back from review"},
	models.StatusComplete: {"good", "check", "Complete"}, models.StatusCancelled: {"muted", "off", "Cancelled"}, models.StatusOnHold: {"held", "pause", "On hold"},
}

// priorityMarks show the priorities of work orders.
var priorityMarks = map[models.Priority]stateMark{
	models.PriorityHigh: {"strong", "up", "High"}, models.PriorityMedium: {"muted", "", "Medium"}, models.PriorityLow: {"muted", "", "Low"}, models.PriorityNone: {"muted", "", "None"},
}
