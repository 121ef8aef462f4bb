package console

import (
	"context"
	"time"

	"millwright/models"
	"millwright/service"
)

// Service is what the console uses of the service. Reads and writes take an Actor and check
// its permissions; the others are about signing in and serve no records. A test keeps this so.
type Service interface {
	SignInService

	ChangeProfile(context.Context, service.Actor, service.Profile) error
	ChangePassword(context.Context, service.Actor, service.PasswordChange) (string, error)
	Sessions(context.Context, service.Actor) ([]service.SessionView, error)
	EndSession(ctx context.Context, actor service.Actor, id string) error
	EndOtherSessions(ctx context.Context, actor service.Actor, except string) error

	PeopleForPerson(ctx context.Context, actor service.Actor, organizationID string, filter service.PersonFilter) ([]service.PersonSummary, error)
	PersonOf(ctx context.Context, actor service.Actor, id string) (service.PersonSummary, error)
	OpenIDRequirementOf(ctx context.Context, actor service.Actor, issuer string) (service.OpenIDRequirement, error)
	RequireOpenID(ctx context.Context, actor service.Actor, organizationID, issuer string) error
	LiftOpenID(ctx context.Context, actor service.Actor, organizationID string) error
	PersonEffects(ctx context.Context, actor service.Actor, id string) (service.PersonEffects, error)
	OrganizationDefinitions(context.Context, service.Actor) ([]service.DefinitionSummary, error)
	InvitePerson(ctx context.Context, actor service.Actor, organizationID string, in service.Invitation) (service.PersonAccess, service.LinkEmail, error)
	NewPersonLink(ctx context.Context, actor service.Actor, id string, show bool) (service.LinkEmail, error)
	ChangePersonAccess(ctx context.Context, actor service.Actor, id string, change service.AccessChange) (service.PersonAccess, *service.LinkEmail, error)
	ChangePersonEmail(ctx context.Context, actor service.Actor, id, email string) (service.PersonAccess, error)
	RemoveWaysIn(ctx context.Context, actor service.Actor, id string) (service.PersonAccess, error)
	LinkedAccounts(context.Context, service.Actor) ([]service.LinkedAccount, error)
	UnlinkAccount(ctx context.Context, actor service.Actor, sessionID, issuer, subject string) error
	DeactivatePerson(ctx context.Context, actor service.Actor, id string) (service.PersonAccess, error)
	ActivatePerson(ctx context.Context, actor service.Actor, id string) (service.PersonAccess, error)

	WorkOrderDetail(ctx context.Context, actor service.Actor, id string, before int64) (service.WorkOrderDetail, error)
	WorkOrderAssignees(ctx context.Context, actor service.Actor, id, search string) (service.WorkOrderAssignees, error)
	AssignWorkOrder(ctx context.Context, actor service.Actor, call service.RequestKey, id string, assignees, consultants []string) (service.WriteResult, error)
	UnassignWorkOrder(ctx context.Context, actor service.Actor, call service.RequestKey, id, identity string) (service.WriteResult, error)
	AnswerWorkOrder(ctx context.Context, actor service.Actor, call service.RequestKey, id string, answers []service.GivenAnswer, completion service.Completion) (service.WriteResult, error)
	HoldWorkOrder(ctx context.Context, actor service.Actor, call service.RequestKey, id string) (service.WriteResult, error)
	ResumeWorkOrder(ctx context.Context, actor service.Actor, call service.RequestKey, id string) (service.WriteResult, error)
	CancelWorkOrder(ctx context.Context, actor service.Actor, call service.RequestKey, id string, reason *string) (service.WriteResult, error)
	ReviewWorkOrder(ctx context.Context, actor service.Actor, call service.RequestKey, id string, review service.Review) (service.WriteResult, error)
	ReadableRecords(ctx context.Context, actor service.Actor, ids []string) (map[string]service.RecordKind, error)
	RecordHistory(ctx context.Context, actor service.Actor, id string, before int64, limit int) (service.HistoryPage, error)
	Definitions(context.Context, service.Actor) (service.Definitions, error)
	AssignmentsOf(ctx context.Context, actor service.Actor, identityID string) (service.Assignments, error)

	TeamsOf(context.Context, service.Actor, service.NameFilter) ([]service.TeamSummary, error)
	TeamOf(ctx context.Context, actor service.Actor, id string, filter service.NameFilter) (service.TeamDetail, error)
	TeamMemberOf(ctx context.Context, actor service.Actor, id, memberID string) (service.TeamSummary, service.TeamMember, error)
	TeamsOfPerson(ctx context.Context, actor service.Actor, personID string) ([]service.Team, error)
	TeamEffects(ctx context.Context, actor service.Actor, id string) (service.TeamSummary, int, error)
	CreateTeam(ctx context.Context, actor service.Actor, organizationID, name string) (service.Team, error)
	RenameTeam(ctx context.Context, actor service.Actor, id, name string) (service.Team, error)
	AddTeamMembers(ctx context.Context, actor service.Actor, id string, personIDs []string) (service.Team, error)
	RemoveTeamMember(ctx context.Context, actor service.Actor, id, memberID string) (service.Team, error)
	DeleteTeam(ctx context.Context, actor service.Actor, id string) (service.Team, error)

	FormsForPerson(context.Context, service.Actor, service.NameFilter) ([]service.FormSummary, error)
	FormOf(ctx context.Context, actor service.Actor, id string) (service.FormDetail, error)

	LogRecords(ctx context.Context, actor service.Actor, organizationID string, filter service.LogFilter) (service.LogPage, error)
	Notices(context.Context, service.Actor, service.NoticeFilter) ([]service.NoticeView, error)
	ReadNotice(ctx context.Context, actor service.Actor, id int64) (recordID string, err error)
	ReadNotices(ctx context.Context, actor service.Actor, last int64) error
	DeliveryOverview(context.Context, service.Actor) (service.DeliveryOverview, error)

	SearchWorkOrders(ctx context.Context, actor service.Actor, search service.WorkOrderSearch, after string, limit int) (service.WorkOrderPage, error)
	WorkOrderBoard(ctx context.Context, actor service.Actor, search service.WorkOrderSearch) (service.WorkOrderBoard, error)

	SearchNodes(ctx context.Context, actor service.Actor, search service.NodeSearch) ([]models.NodeReference, error)
	CreatableNodes(ctx context.Context, actor service.Actor, below, after string) (service.CreatableNodes, error)
	WorkOrderChoices(ctx context.Context, actor service.Actor, nodeID, text string, chosen []string) (service.WorkOrderChoices, error)
	UpdateWorkOrder(ctx context.Context, actor service.Actor, call service.RequestKey, id string, patch service.WorkOrderPatch) (service.WriteResult, error)
	CreateWorkOrder(ctx context.Context, actor service.Actor, call service.RequestKey, in service.NewWorkOrder) (service.WriteResult, error)
	Feedback(ctx context.Context, actor service.Actor, id string) ([]byte, error)

	Waiting(context.Context, service.Actor) (service.Waiting, error)
	WorkOrderDays(ctx context.Context, actor service.Actor, zone *time.Location, days int) ([]service.WorkOrderDay, error)

	FeedbackOf(ctx context.Context, actor service.Actor, filter service.FeedbackFilter, cursor string, limit int) (service.FeedbackPage, error)
	FeedbackDetail(ctx context.Context, actor service.Actor, id string) (service.FeedbackDetail, error)
	FeedbackPlaces(ctx context.Context, actor service.Actor, node string) (service.FeedbackPlaces, error)
	GiveFeedback(ctx context.Context, actor service.Actor, node string, in service.NewFeedback) (service.WriteResult, error)
	ResolveFeedback(ctx context.Context, actor service.Actor, call service.RequestKey, id string) (service.WriteResult, error)

	InventoryLevel(ctx context.Context, actor service.Actor, level service.NodeLevel) ([]service.LevelNode, error)
	NodeForPerson(ctx context.Context, actor service.Actor, id string) (service.NodeView, error)
	NodeWorkOrders(ctx context.Context, actor service.Actor, nodeID string) ([]models.WorkOrderRecord, error)
	NodeFeedback(ctx context.Context, actor service.Actor, nodeID string) ([]models.FeedbackRecord, error)
	Assignees(ctx context.Context, actor service.Actor, nodeID string, page service.AssigneePage) ([]service.Assignee, error)
	AssigneeChoices(ctx context.Context, actor service.Actor, nodeID string) (service.AssigneeChoices, error)
	AssignTo(ctx context.Context, actor service.Actor, nodeID, identity, definitionID string) error
	AssignmentEffects(ctx context.Context, actor service.Actor, nodeID, identityID string) (service.AssignmentEffects, error)

	ManagedIntegrations(context.Context, service.Actor) (service.IntegrationList, error)
	ManagedIntegration(ctx context.Context, actor service.Actor, id string) (service.IntegrationDetail, error)
	ManagedIntegrationEffects(ctx context.Context, actor service.Actor, id string) (service.IntegrationRecord, service.IntegrationEffects, error)
	CreateIntegration(ctx context.Context, actor service.Actor, organizationID string, in service.NewIntegration) (service.IntegrationRecord, error)
	ChangeIntegration(ctx context.Context, actor service.Actor, id string, change service.IntegrationChange) (service.IntegrationRecord, error)
	SetIntegrationOwners(ctx context.Context, actor service.Actor, id string, people []string) (service.IntegrationRecord, error)
	PossibleOwners(ctx context.Context, actor service.Actor) ([]service.IntegrationOwner, error)
	RenewIntegrationSecret(ctx context.Context, actor service.Actor, id string) (service.IntegrationRecord, error)
	TurnIntegrationOn(ctx context.Context, actor service.Actor, id string) (service.IntegrationRecord, error)
	TurnIntegrationOff(ctx context.Context, actor service.Actor, id string) (service.IntegrationRecord, error)
	DeleteIntegration(ctx context.Context, actor service.Actor, id string) (service.IntegrationRecord, error)
	CallFigures(ctx context.Context, actor service.Actor, integrationID string, span, step time.Duration) (service.IntegrationCalls, error)
	AssignmentChoices(context.Context, service.Actor) (service.AssignmentChoices, error)
	AssignIntegration(ctx context.Context, actor service.Actor, integrationID, node, definitionID string) error
	Unassign(ctx context.Context, actor service.Actor, nodeID, identityID string) error
	CanSee(ctx context.Context, actor service.Actor, integrationID, id string) (service.Visibility, error)

	ManagedWebhook(ctx context.Context, actor service.Actor, id string) (service.WebhookDetail, error)
	CreateWebhook(ctx context.Context, actor service.Actor, integrationID string, in service.NewWebhook) (service.Webhook, error)
	ChangeWebhook(ctx context.Context, actor service.Actor, id string, change service.WebhookChange) (service.Webhook, error)
	RenewWebhookSecret(ctx context.Context, actor service.Actor, id string) (service.Webhook, error)
	BeginWebhookTest(ctx context.Context, actor service.Actor, id string) (service.WakeTarget, error)
	DisableWebhook(ctx context.Context, actor service.Actor, id, reason string) (service.Webhook, error)
	EnableWebhook(ctx context.Context, actor service.Actor, id string, since *models.Time) (service.Webhook, int, error)
	CountMissed(ctx context.Context, actor service.Actor, webhookID string, since models.Time) (int, error)
	RedeliverSince(ctx context.Context, actor service.Actor, webhookID string, since models.Time) (int, error)
	DeleteWebhook(ctx context.Context, actor service.Actor, id string) error
	DeliveryFigures(ctx context.Context, actor service.Actor, webhookID string, span, step time.Duration) ([]service.DeliveryFigures, error)
	SearchDeliveries(ctx context.Context, actor service.Actor, search service.DeliverySearch, before string, limit int) (service.DeliveryPage, error)
	DeliveryOf(ctx context.Context, actor service.Actor, id string) (service.DeliveryDetail, error)
	RedeliverDelivery(ctx context.Context, actor service.Actor, id string) (service.DeliveryView, error)
	RedeliverSelected(ctx context.Context, actor service.Actor, ids []string) (int, error)
	CountMatching(context.Context, service.Actor, service.DeliverySearch) ([]service.MatchCount, error)
	RedeliverMatching(context.Context, service.Actor, service.DeliverySearch) (int, error)
}

// SignInService is about signing in.
type SignInService interface {
	SignIn(context.Context, service.SignInAttempt) (service.SignedIn, error)
	ChooseOrganization(ctx context.Context, choice, personID string, client service.Client) (string, error)
	Session(ctx context.Context, token string) (service.Viewer, error)
	SignOut(ctx context.Context, token string) error
	CountVisitor(ctx context.Context, network string) (service.Rate, error)
	BeginOpenID(ctx context.Context, state any, client service.Client) (string, error)
	RedeemOpenID(ctx context.Context, sealed string, into any) error
	FinishOpenID(ctx context.Context, client service.Client) error
	ForgotPassword(ctx context.Context, email string, client service.Client) error
	MailsLinks() bool
	SignInAgain(ctx context.Context, viewer service.Viewer, password string, client service.Client) error
	SignInAgainOpenID(ctx context.Context, viewer service.Viewer, account service.OpenIDAccount, request string) error
	BeginSignInAgain(viewer service.Viewer) (string, error)
	RenewRecent(context.Context, service.Viewer) error
	Link(ctx context.Context, token string) (service.LinkView, error)
	UseLink(context.Context, service.LinkUse) (service.SignedIn, error)
	SignInOpenID(context.Context, service.OpenIDAccount, service.Client) (service.SignedIn, error)
	AcceptWithOpenID(ctx context.Context, token string, account service.OpenIDAccount, client service.Client) (service.SignedIn, error)
}
