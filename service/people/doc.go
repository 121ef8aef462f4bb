// Package people decides who belongs to an organization and how they prove it: people, teams,
// invitations, passwords, OpenID accounts, sessions, the notices that they read and the e-mails
// with links that they get.
//
// Inputs are an Actor or what a visitor entered; outputs are people, teams, sessions and
// Viewers. Its tables are people, identities, team_members, sessions, sign_in_links and
// openid_accounts. It imports inventory, lists, access and store.
package people
