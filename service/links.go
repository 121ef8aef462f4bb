package service

import "millwright/models"

// LinkEmail is an e-mail with a link for signing in. It goes from the service to the mail
// server, never into a log.
type LinkEmail struct {
	Kind         models.LinkKind
	PersonName   string
	Email        string
	Organization string
	URL          string
	ExpiresAt    models.Time
}
