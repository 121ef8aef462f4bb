package console

// Service is what the console calls: each file declares its own part. Reads and writes take an
// Actor and check its permissions; the others are about signing in and serve no records. A
// test keeps this so.
type Service interface {
	signingIn
	accountService
	assignedService
	chartsCallsService
	chartsDeliveriesService
	chartsWorkOrdersService
	commentsService
	definitionsService
	deliveriesService
	deliveryService
	feedbackService
	historyService
	integrationService
	integrationAccessService
	integrationAssignService
	integrationsService
	inventoryService
	labelService
	logService
	nodeService
	nodeAssignService
	nodeEditService
	noticesService
	openidRequiredService
	organizationFormsService
	peopleService
	recordURLsService
	redeliveryService
	startService
	teamsService
	companiesService
	webhookService
	webhookMissedService
	webhookNewService
	workOrderService
	workOrderActionsService
	workOrderAnswersService
	workOrderEditService
	workOrderIntegrationsService
	workOrderNewService
	workOrdersService
}

// signingIn is what signing in calls.
type signingIn interface {
	cookiesService
	keptInputService
	linksService
	openidService
	recentService
	requestService
	signInService
}
