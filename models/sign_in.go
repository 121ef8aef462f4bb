package models

// Theme is how the console looks.
type Theme string

// The themes.
const (
	ThemeLight Theme = "light"
	ThemeDark  Theme = "dark"
)

// SignInMethod is how a person signed in.
type SignInMethod string

// The ways to sign in.
const (
	SignedInByPassword SignInMethod = "password"
	SignedInByLink     SignInMethod = "link"
	SignedInByOpenID   SignInMethod = "openid"
)

// Session is a browser in which a person is signed in to the console.
type Session struct {
	TokenHash []byte `gorm:"primaryKey"`
	ID        string
	PersonID  string
	Method    SignInMethod
	CreatedAt Time
	// SeenAt is the last request, within a minute.
	SeenAt    Time
	Network   string
	UserAgent string
	// AuthenticatedAt is when the person last showed who it is, nil if that is not known, and
	// RecentUntil until when that is recent (RecentSignIn).
	AuthenticatedAt, RecentUntil *Time
}

// LinkKind is what a sign-in link is for.
type LinkKind string

// The kinds of sign-in link.
const (
	LinkInvitation LinkKind = "invitation"
	LinkReset      LinkKind = "reset"
)

// SignInLink is a link that lets a person choose a password, once.
type SignInLink struct {
	TokenHash      []byte `gorm:"primaryKey"`
	OrganizationID string
	PersonID       string
	Kind           LinkKind
	CreatedAt      Time
	ExpiresAt      Time
	// Sealed is the token of a link that waits to be mailed, nil for others.
	Sealed []byte
	// Requested is whether the person asked for it; others made all other links.
	Requested bool
	// Private is whether no one below administrator saw it.
	Private bool
}

// OpenIDAccount links an account of an OpenID provider to a person.
type OpenIDAccount struct {
	Issuer    string `gorm:"primaryKey"`
	Subject   string `gorm:"primaryKey"`
	PersonID  string `gorm:"primaryKey"`
	CreatedAt Time
	// Private is whether no one below administrator saw the link that linked it.
	Private bool
}

// TableName returns openid_accounts.
func (OpenIDAccount) TableName() string { return "openid_accounts" }

// FormKey is the key of a form that was sent, and the record that it created or changed.
type FormKey struct {
	PersonID string `gorm:"primaryKey"`
	Key      string `gorm:"primaryKey"`
	RecordID string
	UsedAt   Time
}
