package console

import (
	"context"
	"time"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/integrations"
	"millwright/service/inventory"
	"millwright/service/lists"
	"millwright/service/pages"
	"millwright/service/people"
	"millwright/service/records"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// Service is what the console calls. Reads and writes take an Actor and check its permissions; the
// functions for signing in serve no records. A test keeps this so.
type Service interface {
	signingIn

	// The viewer's account and inbox.
	ChangeProfile(context.Context, store.Actor, people.Profile) error
	ChangePassword(context.Context, store.Actor, people.PasswordChange) (string, error)
	Sessions(context.Context, store.Actor) ([]people.SessionView, error)
	EndSession(ctx context.Context, actor store.Actor, id string) error
	EndOtherSessions(ctx context.Context, actor store.Actor, except string) error
	LinkedAccounts(context.Context, store.Actor) ([]people.LinkedAccount, error)
	UnlinkAccount(ctx context.Context, actor store.Actor, sessionID, issuer, subject string) error
	Notices(context.Context, store.Actor, people.NoticeFilter) ([]people.NoticeView, error)
	ReadNotice(ctx context.Context, actor store.Actor, id int64) (recordID string, err error)
	ReadNotices(ctx context.Context, actor store.Actor, last int64) error
	ReadNoticesAbout(ctx context.Context, actor store.Actor, recordID string) error

	// Work orders.
	SearchWorkOrders(ctx context.Context, actor store.Actor, search records.WorkOrderSearch, after string, limit int) (records.WorkOrderPage, error)
	WorkOrderBoard(ctx context.Context, actor store.Actor, search records.WorkOrderSearch) (records.WorkOrderBoard, error)
	WorkOrderDetail(ctx context.Context, actor store.Actor, id string, part records.HistoryPart) (records.WorkOrderDetail, error)
	CreatableNodes(ctx context.Context, actor store.Actor, below, after string) (records.CreatableNodes, error)
	WorkOrderChoices(ctx context.Context, actor store.Actor, nodeID, text string, chosen []string) (records.WorkOrderChoices, error)
	CreateWorkOrder(ctx context.Context, actor store.Actor, call store.RequestKey, in records.NewWorkOrder) (store.WriteResult, error)
	Feedback(ctx context.Context, actor store.Actor, id string) ([]byte, error)
	UpdateWorkOrder(ctx context.Context, actor store.Actor, call store.RequestKey, id string, patch records.WorkOrderPatch) (store.WriteResult, error)
	WorkOrderAssignees(ctx context.Context, actor store.Actor, id, search string, chosen []string) (records.WorkOrderAssignees, error)
	ReplaceWorkers(ctx context.Context, actor store.Actor, call store.RequestKey, id string, workers []string) (store.WriteResult, error)
	AssignWorkOrder(ctx context.Context, actor store.Actor, call store.RequestKey, id string, assignees, consultants []string) (store.WriteResult, error)
	UnassignWorkOrder(ctx context.Context, actor store.Actor, call store.RequestKey, id, identity string) (store.WriteResult, error)
	AnswerWorkOrder(ctx context.Context, actor store.Actor, call store.RequestKey, id string, answers []records.GivenAnswer, completion records.Completion) (store.WriteResult, error)
	HoldWorkOrder(ctx context.Context, actor store.Actor, call store.RequestKey, id string) (store.WriteResult, error)
	ResumeWorkOrder(ctx context.Context, actor store.Actor, call store.RequestKey, id string) (store.WriteResult, error)
	CancelWorkOrder(ctx context.Context, actor store.Actor, call store.RequestKey, id string, reason *string) (store.WriteResult, error)
	ReviewWorkOrder(ctx context.Context, actor store.Actor, call store.RequestKey, id string, review records.Review) (store.WriteResult, error)
	ReturnWorkOrder(ctx context.Context, actor store.Actor, call store.RequestKey, id, reason string) (store.WriteResult, error)
	WorkOrderDays(ctx context.Context, actor store.Actor, zone *time.Location, days int) ([]records.WorkOrderDay, error)

	// Feedback and comments.
	FeedbackForPerson(ctx context.Context, actor store.Actor, filter records.FeedbackFilter, cursor string, limit int) (lists.Page[models.FeedbackRecord], error)
	FeedbackDetail(ctx context.Context, actor store.Actor, id string, part records.HistoryPart) (records.FeedbackDetail, error)
	HeldGrants(ctx context.Context, actor store.Actor, grants ...models.Grant) ([]models.Grant, error)
	FeedbackPlaces(ctx context.Context, actor store.Actor, node string) (records.FeedbackPlaces, error)
	GiveFeedback(ctx context.Context, actor store.Actor, node string, in records.NewFeedback) (store.WriteResult, error)
	ResolveFeedback(ctx context.Context, actor store.Actor, call store.RequestKey, id string) (store.WriteResult, error)
	AddComment(ctx context.Context, actor store.Actor, recordID, text string) error
	CommentToRemove(ctx context.Context, actor store.Actor, id string) (models.Comment, error)
	RemoveComment(ctx context.Context, actor store.Actor, id string) error
	RecordHistory(ctx context.Context, actor store.Actor, id string, before int64, limit int) (records.HistoryPage, error)

	// The inventory, the permissions on it, and forms.
	SearchNodes(ctx context.Context, actor store.Actor, search inventory.NodeSearch) ([]inventory.FoundNode, error)
	InventoryLevel(ctx context.Context, actor store.Actor, level inventory.NodeLevel) ([]inventory.LevelNode, error)
	NodeForPerson(ctx context.Context, actor store.Actor, id string) (inventory.NodeView, error)
	NodeWorkOrders(ctx context.Context, actor store.Actor, nodeID string) ([]models.WorkOrderRecord, error)
	NodeFeedback(ctx context.Context, actor store.Actor, nodeID string) ([]models.FeedbackRecord, error)
	Assignees(ctx context.Context, actor store.Actor, nodeID string, page records.AssigneePage) ([]records.Assignee, error)
	NodeUse(ctx context.Context, actor store.Actor, id string) (inventory.NodeView, inventory.NodeUse, error)
	CreateNode(ctx context.Context, actor store.Actor, parentID string, kind models.NodeKind, in inventory.NodeFields) (string, error)
	ChangeNode(ctx context.Context, actor store.Actor, id string, in inventory.NodeFields) error
	MoveNode(ctx context.Context, actor store.Actor, id, parent string) error
	RetireNode(ctx context.Context, actor store.Actor, id string) error
	BringNodeBack(ctx context.Context, actor store.Actor, id string) error
	AssigneeChoices(ctx context.Context, actor store.Actor, nodeID string) (records.AssigneeChoices, error)
	AssignTo(ctx context.Context, actor store.Actor, nodeID, identity, definitionID string) error
	AssignmentEffects(ctx context.Context, actor store.Actor, nodeID, identityID string) (pages.AssignmentEffects, error)
	AssignmentsForPerson(ctx context.Context, actor store.Actor, identityID string) (records.Assignments, error)
	Definitions(context.Context, store.Actor) (inventory.Definitions, error)
	FormsForPerson(context.Context, store.Actor, lists.NameFilter) ([]inventory.FormSummary, error)
	FormForPerson(ctx context.Context, actor store.Actor, id string) (inventory.FormDetail, error)

	// People, teams and service companies.
	PeopleForPerson(ctx context.Context, actor store.Actor, organizationID string, filter people.PersonFilter) ([]people.PersonSummary, error)
	PersonForPerson(ctx context.Context, actor store.Actor, id string) (people.PersonSummary, error)
	PersonEffects(ctx context.Context, actor store.Actor, id string) (people.PersonEffects, error)
	InvitePerson(ctx context.Context, actor store.Actor, organizationID string, in people.Invitation) (people.PersonAccess, people.LinkEmail, error)
	NewPersonLink(ctx context.Context, actor store.Actor, id string, show bool) (people.LinkEmail, error)
	ChangePersonAccess(ctx context.Context, actor store.Actor, id string, change people.AccessChange) (people.PersonAccess, *people.LinkEmail, error)
	ChangePersonEmail(ctx context.Context, actor store.Actor, id, email string) (people.PersonAccess, error)
	RemoveWaysIn(ctx context.Context, actor store.Actor, id string) (people.PersonAccess, error)
	DeactivatePerson(ctx context.Context, actor store.Actor, id, replacement string) (people.PersonAccess, error)
	ActivatePerson(ctx context.Context, actor store.Actor, id string) (people.PersonAccess, error)
	TeamsOfPerson(ctx context.Context, actor store.Actor, personID string) ([]people.Team, error)
	OpenIDRequirementForPerson(ctx context.Context, actor store.Actor, issuer string) (people.OpenIDRequirement, error)
	RequireOpenID(ctx context.Context, actor store.Actor, organizationID, issuer string) error
	LiftOpenID(ctx context.Context, actor store.Actor, organizationID string) error
	TeamsForPerson(context.Context, store.Actor, lists.NameFilter) ([]people.TeamSummary, error)
	TeamForPerson(ctx context.Context, actor store.Actor, id string, filter lists.NameFilter) (people.TeamDetail, error)
	TeamMemberForPerson(ctx context.Context, actor store.Actor, id, memberID string) (people.TeamSummary, people.TeamMember, error)
	TeamEffects(ctx context.Context, actor store.Actor, id string) (people.TeamSummary, int, error)
	CreateTeam(ctx context.Context, actor store.Actor, organizationID, name string) (people.Team, error)
	RenameTeam(ctx context.Context, actor store.Actor, id, name string) (people.Team, error)
	AddTeamMembers(ctx context.Context, actor store.Actor, id string, personIDs []string) (people.Team, error)
	RemoveTeamMember(ctx context.Context, actor store.Actor, id, memberID string) (people.Team, error)
	DeleteTeam(ctx context.Context, actor store.Actor, id string) (people.Team, error)
	ServiceCompanies(context.Context, store.Actor) ([]inventory.ServiceCompany, error)
	ServiceCompany(ctx context.Context, actor store.Actor, id string) (inventory.ServiceCompany, error)
	EndServiceCompany(ctx context.Context, actor store.Actor, id string) error

	// Integrations.
	OrganizationDefinitions(context.Context, store.Actor) ([]inventory.DefinitionSummary, error)
	ManagedIntegrations(context.Context, store.Actor) (integrations.IntegrationList, error)
	CreateIntegration(ctx context.Context, actor store.Actor, organizationID string, in integrations.NewIntegration) (integrations.IntegrationRecord, error)
	ManagedIntegration(ctx context.Context, actor store.Actor, id string) (pages.IntegrationDetail, error)
	ManagedIntegrationEffects(ctx context.Context, actor store.Actor, id string) (integrations.IntegrationRecord, pages.IntegrationEffects, error)
	ChangeIntegration(ctx context.Context, actor store.Actor, id string, change integrations.IntegrationChange) (integrations.IntegrationRecord, error)
	SetIntegrationOwners(ctx context.Context, actor store.Actor, id string, people []string) (integrations.IntegrationRecord, error)
	PossibleOwners(ctx context.Context, actor store.Actor) ([]integrations.IntegrationOwner, error)
	RenewIntegrationSecret(ctx context.Context, actor store.Actor, id string) (integrations.IntegrationRecord, error)
	TurnIntegrationOn(ctx context.Context, actor store.Actor, id string) (integrations.IntegrationRecord, error)
	TurnIntegrationOff(ctx context.Context, actor store.Actor, id string) (integrations.IntegrationRecord, error)
	DeleteIntegration(ctx context.Context, actor store.Actor, id string) (integrations.IntegrationRecord, error)
	AssignmentChoices(context.Context, store.Actor) (integrations.AssignmentChoices, error)
	AssignIntegration(ctx context.Context, actor store.Actor, integrationID, node, definitionID string) error
	Unassign(ctx context.Context, actor store.Actor, nodeID, identityID string) error
	CanSee(ctx context.Context, actor store.Actor, integrationID, id string) (pages.Visibility, error)
	WhoSees(ctx context.Context, actor store.Actor, recordID string) ([]pages.IntegrationSight, error)
	CallFigures(ctx context.Context, actor store.Actor, integrationID string, span, step time.Duration) (access.IntegrationCalls, error)

	// Webhook addresses and deliveries.
	CreateWebhook(ctx context.Context, actor store.Actor, integrationID string, in webhooks.NewWebhook) (webhooks.Webhook, error)
	ManagedWebhook(ctx context.Context, actor store.Actor, id string) (webhooks.WebhookDetail, error)
	ChangeWebhook(ctx context.Context, actor store.Actor, id string, change webhooks.WebhookChange) (webhooks.Webhook, error)
	RenewWebhookSecret(ctx context.Context, actor store.Actor, id string) (webhooks.Webhook, error)
	BeginWebhookTest(ctx context.Context, actor store.Actor, id string) (webhooks.BegunTest, error)
	DisableWebhook(ctx context.Context, actor store.Actor, id, reason string) (webhooks.Webhook, error)
	DeleteWebhook(ctx context.Context, actor store.Actor, id string) error
	EnableWebhook(ctx context.Context, actor store.Actor, id string, since *models.Time) (webhooks.Webhook, webhooks.Released, error)
	CountMissed(ctx context.Context, actor store.Actor, webhookID string, since models.Time) (int, error)
	RedeliverSince(ctx context.Context, actor store.Actor, webhookID string, since models.Time) (webhooks.Released, error)
	SearchDeliveries(ctx context.Context, actor store.Actor, search webhooks.DeliverySearch, before string, limit int) (webhooks.DeliveryPage, error)
	DeliveryForPerson(ctx context.Context, actor store.Actor, id string) (webhooks.DeliveryDetail, error)
	RedeliverDelivery(ctx context.Context, actor store.Actor, id string) (webhooks.DeliveryView, error)
	RedeliverSelected(ctx context.Context, actor store.Actor, ids []string) (webhooks.Released, error)
	CountMatching(context.Context, store.Actor, webhooks.DeliverySearch) ([]webhooks.MatchCount, error)
	RedeliverMatching(context.Context, store.Actor, webhooks.DeliverySearch) (int, error)
	DeliveryFigures(ctx context.Context, actor store.Actor, webhookID string, span, step time.Duration) ([]webhooks.DeliveryFigures, error)

	// The start page, the log, and records by what names them.
	DeliveryOverview(context.Context, store.Actor) (webhooks.DeliveryOverview, error)
	WorkOrderQueue(ctx context.Context, actor store.Actor, zone string) (records.Queue, error)
	LogRecords(ctx context.Context, actor store.Actor, organizationID string, filter pages.LogFilter) (pages.LogPage, error)
	ReadableRecords(ctx context.Context, actor store.Actor, ids []string) (map[string]records.ReadableRecord, error)
	RecordsNamed(ctx context.Context, actor store.Actor, text string) ([]records.ReadableRecord, error)
}

// signingIn is what signing in calls.
type signingIn interface {
	SignOut(ctx context.Context, token string) error
	KeepInput(personID string, input people.KeptInput) (string, error)
	OpenInput(personID, sealed string) (people.KeptInput, bool)
	ForgotPassword(ctx context.Context, email string, client people.Client) error
	MailsLinks() bool
	Link(ctx context.Context, token string) (people.LinkView, error)
	UseLink(context.Context, people.LinkUse) (people.SignedIn, error)
	BeginOpenID(ctx context.Context, state any, client people.Client) (string, error)
	RedeemOpenID(ctx context.Context, sealed string, into any) error
	FinishOpenID(ctx context.Context, client people.Client) error
	SignInAgainOpenID(ctx context.Context, viewer people.Viewer, account people.OpenIDAccount, request string) error
	BeginSignInAgain(viewer people.Viewer) (string, error)
	SignInOpenID(context.Context, people.OpenIDAccount, people.Client) (people.SignedIn, error)
	AcceptWithOpenID(ctx context.Context, token string, account people.OpenIDAccount, client people.Client) (people.SignedIn, error)
	SignInAgain(ctx context.Context, viewer people.Viewer, password string) error
	RenewRecent(context.Context, people.Viewer) error
	Session(ctx context.Context, token string) (people.Viewer, error)
	PolledSession(ctx context.Context, token string) (people.Viewer, error)
	PersonOfSession(token string) string
	KnownBrowser(people.Client) string
	CountVisitor(ctx context.Context, network, known string) (access.Rate, error)
	CountForm(ctx context.Context, actor store.Actor, kind access.FormKind) (access.Rate, error)
	EnterParsing(ctx context.Context, tenant string) (leave func(), err error)
	EnterCall(ctx context.Context, organizationID string) (end func(), err error)
	SignIn(context.Context, people.SignInAttempt) (people.SignedIn, error)
	ChooseOrganization(ctx context.Context, choice, personID string, client people.Client) (string, error)
}
