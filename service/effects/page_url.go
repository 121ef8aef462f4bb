package effects

import (
	"cmp"
	"strings"

	"millwright/models"
)

// pages are where the console shows what notices and workflows are about, by the prefix of an
// id or the kind of an identity.
var pages = map[string]string{
	string(models.PrefixWorkOrder): "/work-orders/", string(models.PrefixFeedback): "/feedback/", string(models.PrefixWebhook): "/webhooks/",
	string(models.PrefixDelivery): "/deliveries/", string(models.KindPerson): "/people/", string(models.KindIntegration): "/integrations/", string(models.KindTeam): "/teams/",
}

// PageURL is the URL of the record in the console, of the inbox if the person may not read it, or
// of the start page.
func (n MailedNotice) PageURL(publicURL string) string {
	if !n.Readable {
		return InboxURL(publicURL)
	}
	return pageURL(publicURL, n.IdentityKind, n.RecordID)
}

// InboxURL is the URL of a person's inbox in the console.
func InboxURL(publicURL string) string { return publicURL + "/console/notices" }

// PageURL is the URL of the page in the console of what has the id.
func PageURL(publicURL, id string) string { return pageURL(publicURL, "", id) }

func pageURL(publicURL, kind, id string) string {
	prefix, _, _ := strings.Cut(id, "_")
	if page, known := pages[cmp.Or(kind, prefix)]; known {
		return publicURL + "/console" + page + id
	}
	return publicURL + "/console"
}
