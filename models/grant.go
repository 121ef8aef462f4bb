package models

// Grant is a permission on a node and, depending on its permission definition, on the
// nodes below (api.md 5.6).
type Grant string

// The grants on inventory nodes.
const (
	GrantInventoryRead     Grant = "inventory.read"
	GrantWorkOrdersRead    Grant = "work_orders.read"
	GrantWorkOrdersCreate  Grant = "work_orders.create"
	GrantWorkOrdersUpdate  Grant = "work_orders.update"
	GrantWorkOrdersDelete  Grant = "work_orders.delete"
	GrantWorkOrdersForward Grant = "work_orders.forward"
	GrantFeedbackRead      Grant = "feedback.read"
	GrantFeedbackCreate    Grant = "feedback.create"
	GrantFeedbackResolve   Grant = "feedback.resolve"
)

// AllGrants lists every grant on inventory nodes.
var AllGrants = []Grant{
	GrantInventoryRead, GrantWorkOrdersRead, GrantWorkOrdersCreate, GrantWorkOrdersUpdate,
	GrantWorkOrdersDelete, GrantWorkOrdersForward, GrantFeedbackRead, GrantFeedbackCreate,
	GrantFeedbackResolve,
}

// OrganizationGrant is an organization-wide permission.
type OrganizationGrant string

// The organization-wide grants. Administrators have all of them.
const (
	GrantIntegrations       OrganizationGrant = "integrations"
	GrantIncomingWorkOrders OrganizationGrant = "incoming_work_orders"
	GrantLogRecords         OrganizationGrant = "log_records"
	GrantPeople             OrganizationGrant = "people"
)

// AllOrganizationGrants lists every organization-wide grant.
var AllOrganizationGrants = []OrganizationGrant{
	GrantIntegrations, GrantIncomingWorkOrders, GrantLogRecords, GrantPeople,
}
