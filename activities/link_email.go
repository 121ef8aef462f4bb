package activities

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"millwright/mail"
	"millwright/models"
	"millwright/service/people"
)

// composeLink renders a sign-in link as an e-mail. The address of the link is the only one in
// it.
func composeLink(link people.LinkEmail, publicURL string) mail.Message {
	name, organization := mail.Unlinked(link.PersonName), mail.Unlinked(link.Organization)
	subject, text := "Choose a new password", "Someone, probably you, asked for a new password for Millwright.\nIf it was not you, do nothing: your password stays as it is."
	if link.Kind == models.LinkInvitation {
		subject, text = "You are invited to "+organization, "You are invited to use Millwright, the maintenance service of "+organization+"."
	}
	id := sha256.Sum256([]byte("e-mail " + link.Token)) // the same when it is sent again
	return mail.Message{
		ID: "link-" + base64.RawURLEncoding.EncodeToString(id[:16]), To: mail.Address{Name: link.PersonName, Email: link.Email}, Subject: subject,
		Text: fmt.Sprintf("Hello %s,\n\n%s\n\nChoose a password here. The link works once, until %s:\n\n%s\n\nOrganization: %s\n",
			name, text, formatTime(link.ExpiresAt, link.TimeZone), link.URL(publicURL), organization),
	}
}
