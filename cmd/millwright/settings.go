package main

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	netmail "net/mail"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"millwright/activities"
	"millwright/console"
	"millwright/mail"
	"millwright/models"
	"millwright/service/store"
	"millwright/service/webhooks"
	"millwright/webhook"
)

// settings are the program's settings, one environment variable each. `millwright
// config` prints them with their doc tags. A secret can be read from a file instead,
// whose path is in the variable NAME_FILE.
type settings struct {
	Addr            string          `env:"MILLWRIGHT_ADDR" form:"host:port" envDefault:"127.0.0.1:8080" doc:"address the API listens on"`
	PublicURL       string          `env:"MILLWRIGHT_PUBLIC_URL" form:"origin" envDefault:"http://127.0.0.1:8080" doc:"address clients use, without /v1; also the issuer of access tokens"`
	Cell            string          `env:"CELL" form:"cell" doc:"name of this installation among several behind one address, 1 to 16 lower-case letters and digits; it becomes part of new client ids"`
	TrustedProxies  []netip.Prefix  `env:"TRUSTED_PROXIES" doc:"networks of proxies whose X-Forwarded-For is trusted, separated by commas"`
	AddressCalls    int             `env:"ADDRESS_CALLS_PER_MINUTE" envDefault:"600" doc:"calls without a valid token that one client address may make per minute"`
	MaxConnections  int             `env:"MAX_CONNECTIONS" envDefault:"10000" doc:"maximum number of client connections of an API server; keep it below the process's file limit"`
	MaxPerClient    int             `env:"MAX_CONNECTIONS_PER_CLIENT" envDefault:"1000" doc:"maximum number of connections from one IPv4 address or IPv6 /64; trusted proxies have no such limit"`
	ProbesAddr      string          `env:"PROBES_ADDR" form:"host:port" doc:"address that serves /livez and /readyz apart from the clients' connections; without it only MILLWRIGHT_ADDR serves them"`
	DatabaseURL     string          `env:"DATABASE_URL" secret:"true" required:"true" doc:"Postgres, as postgres://user:password@host:port/database"`
	DatabaseConns   int             `env:"DATABASE_MAX_CONNECTIONS" envDefault:"16" doc:"maximum number of database connections of a process"`
	TemporalAddress string          `env:"TEMPORAL_ADDRESS" form:"host:port" envDefault:"127.0.0.1:7233" doc:"address of Temporal's frontend"`
	Namespace       string          `env:"TEMPORAL_NAMESPACE" envDefault:"default" doc:"Temporal namespace"`
	TemporalUI      string          `env:"TEMPORAL_UI_URL" form:"url" doc:"address of Temporal's Web UI, for the console's links to workflows; without it there are no links"`
	TemporalAPIKey  string          `env:"TEMPORAL_API_KEY" secret:"true" doc:"key sent with every call to Temporal; implies TLS. If it is in a file, the file is read at each call, so the key can change without a restart"`
	TemporalTLS     bool            `env:"TEMPORAL_TLS" envDefault:"false" doc:"connect to Temporal over TLS; implied by an API key and by the TEMPORAL_TLS_* settings"`
	TemporalCA      string          `env:"TEMPORAL_TLS_SERVER_CA_CERT_PATH" doc:"file with the CA certificates for Temporal's certificate; by default the system's"`
	TemporalName    string          `env:"TEMPORAL_TLS_SERVER_NAME" doc:"name in Temporal's certificate, if it is not the host of TEMPORAL_ADDRESS"`
	TemporalCert    string          `env:"TEMPORAL_TLS_CLIENT_CERT_PATH" doc:"file with the client certificate for Temporal; read at each connection"`
	TemporalKey     string          `env:"TEMPORAL_TLS_CLIENT_KEY_PATH" doc:"file with the key of that certificate"`
	TokenKeys       string          `env:"TOKEN_SIGNING_KEYS" secret:"true" required:"true" doc:"keys that sign access tokens, name:base64 of 32 bytes, separated by commas; the first signs, all are accepted"`
	SealingKeys     string          `env:"SECRET_SEALING_KEYS" secret:"true" required:"true" doc:"keys that encrypt signing secrets at rest, in the same form; the first encrypts, all decrypt"`
	Deployment      string          `env:"TEMPORAL_DEPLOYMENT_NAME" doc:"name of the worker's deployment in Temporal; with it worker processes are versioned and start to work once their version is the current one, see docs/running.md"`
	BuildID         string          `env:"TEMPORAL_WORKER_BUILD_ID" doc:"the worker's version in its deployment, another for each build"`
	CallTimeout     time.Duration   `env:"CALL_TIMEOUT" envDefault:"25s" doc:"time after which a call returns 503"`
	ShutdownDelay   time.Duration   `env:"SHUTDOWN_DELAY" form:"or zero" envDefault:"0s" doc:"time for which a stopping API server reports that it is not ready and still serves, so that load balancers notice"`
	RetrySchedule   []time.Duration `env:"WEBHOOK_RETRY_SCHEDULE" envDefault:"1m,5m,30m,2h,6h,12h,24h" doc:"waits between the attempts of a delivery"`
	ResponseTimeout time.Duration   `env:"WEBHOOK_RESPONSE_TIMEOUT" envDefault:"10s" form:"response time" doc:"time within which a receiver must respond"`
	ShutOffAfter    time.Duration   `env:"WEBHOOK_SHUTOFF_AFTER" envDefault:"72h" doc:"time without a successful delivery after which a final failure turns an address off"`
	MaxRetrying     int             `env:"WEBHOOK_MAX_RETRYING" envDefault:"10000" doc:"maximum number of open workflows of failing deliveries of an address; what fails beyond it is retried when one ends"`
	AllowNetworks   []netip.Prefix  `env:"WEBHOOK_ALLOW_NETWORKS" doc:"non-public networks that webhooks may reach, separated by commas; for development"`
	AllowHTTP       bool            `env:"WEBHOOK_ALLOW_HTTP" envDefault:"false" doc:"allow http:// webhook addresses; for development"`
	SMTPURL         string          `env:"SMTP_URL" secret:"true" doc:"mail server, as smtp://host:port or smtp://user:password@host:port; without it notices are shown only in the console's inbox, and links for signing in only to the people who make them; the API server and the worker process need it"`
	MailFrom        string          `env:"MAIL_FROM" envDefault:"Millwright <no-reply@localhost>" doc:"sender of e-mails, as Name <address>"`
	OIDCIssuer      string          `env:"OIDC_ISSUER" form:"url" doc:"OpenID Connect provider with which people sign in to the console, besides passwords; its redirect address is MILLWRIGHT_PUBLIC_URL/console/openid/callback"`
	OIDCClientID    string          `env:"OIDC_CLIENT_ID" doc:"client id at that provider"`
	OIDCSecret      string          `env:"OIDC_CLIENT_SECRET" secret:"true" doc:"client secret at that provider"`
	OIDCName        string          `env:"OIDC_NAME" envDefault:"single sign-on" doc:"name of that provider on the sign-in page"`
	ReviewReminder  time.Duration   `env:"REVIEW_REMINDER_AFTER" envDefault:"48h" doc:"time after which the consultants of a waiting review are reminded"`
	ReviewOverdue   time.Duration   `env:"REVIEW_ESCALATION_AFTER" envDefault:"96h" doc:"time after which a waiting review is reported to the inventory managers"`
	OperatorActions bool            `env:"OPERATOR_ACTIONS" envDefault:"false" doc:"allow updates in Temporal that change records as a person, for everyone who can reach Temporal or its UI; see docs/security.md"`
	IdleTimeout     time.Duration   `env:"WEBHOOK_IDLE_TIMEOUT" envDefault:"30s" doc:"time for which an idle webhook address's workflow stays ready for the next event"`
	Pollers         int             `env:"WORKER_POLLERS" form:"pollers" envDefault:"8" doc:"polls of a worker for workflows, and as many for activities, in each task queue; 0: as many as Temporal advises"`
	RecordTasks     int             `env:"WORKER_RECORD_TASKS" form:"tasks" envDefault:"32" doc:"maximum number of workflow tasks of records that a worker runs at a time"`
	Retries         int             `env:"WORKER_RETRIES" envDefault:"200" doc:"maximum number of retries of deliveries that a worker makes at a time; half as many begin in a second"`
	CachedWorkflows int             `env:"WORKER_CACHED_WORKFLOWS" envDefault:"2000" doc:"maximum number of workflows in a worker's memory"`
	SweepEvery      time.Duration   `env:"SWEEP_INTERVAL" envDefault:"10s" doc:"interval of the sweep"`
	MetricsAddr     string          `env:"METRICS_ADDR" form:"host:port" doc:"address that serves Prometheus metrics; without it no metrics are served"`
	MetricsHosts    []string        `env:"METRICS_HOSTS" doc:"host names by which METRICS_ADDR may be reached, separated by commas, besides localhost, IP addresses and its own"`
	OTLPEndpoint    string          `env:"OTEL_EXPORTER_OTLP_ENDPOINT" form:"url" doc:"OpenTelemetry collector that receives traces over HTTP, as http://host:4318; without it no traces are sent. The other OTEL_* variables of the SDK, such as OTEL_TRACES_SAMPLER, apply too"`
	TracesEndpoint  string          `env:"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" form:"url" doc:"the same for traces only, with the whole path"`
	LogLevel        slog.Level      `env:"LOG_LEVEL" envDefault:"INFO" doc:"DEBUG, INFO, WARN or ERROR"`
	LogFormat       string          `env:"LOG_FORMAT" form:"log format" envDefault:"auto" doc:"json for programs, text for people, auto: text on a terminal, else json. Text is colored on a terminal, unless NO_COLOR is set"`

	// unknown are other variables whose names begin like settings.
	unknown []string
}

// settingTags returns the tags of the settings.
func settingTags() (tags []reflect.StructTag) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[settings]()) {
		if field.IsExported() {
			tags = append(tags, field.Tag)
		}
	}
	return tags
}

// loadSettings reads the environment. The error names every missing or malformed
// setting and never shows a value.
func loadSettings() (settings, error) {
	var s settings
	values, problems := environment()
	err := env.ParseWithOptions(&s, env.Options{Environment: values})
	malformed := map[string]bool{}
	var aggregate env.AggregateError
	if errors.As(err, &aggregate) {
		for _, e := range aggregate.Errors {
			if parse, ok := errors.AsType[env.ParseError](e); ok {
				malformed[parse.Name] = true
				continue
			}
			problems = append(problems, "the settings cannot be read")
		}
	}
	t, v := reflect.TypeFor[settings](), reflect.ValueOf(s)
	for i := range settingTags() {
		field, value := t.Field(i), v.Field(i)
		switch {
		case malformed[field.Name]:
			problems = append(problems, fmt.Sprintf("%s is malformed; it must be %s: %s", field.Tag.Get("env"), typeForms[field.Type], field.Tag.Get("doc")))
		case field.Tag.Get("required") == "true" && value.IsZero():
			problems = append(problems, fmt.Sprintf("%s is not set; it is: %s", field.Tag.Get("env"), field.Tag.Get("doc")))
		default:
			if want := wantedForm(value.Interface(), field.Tag.Get("form")); want != "" {
				problems = append(problems, fmt.Sprintf("%s is malformed; it must be %s", field.Tag.Get("env"), want))
			}
		}
	}
	misspelt, unknown := unknownSettings(maps.Keys(values))
	s.unknown = unknown
	problems = append(problems, misspelt...)
	if len(problems) > 0 {
		return s, errors.New("some settings are missing or malformed:\n  " + strings.Join(problems, "\n  "))
	}
	return s, nil
}

// fileSuffix ends the name of the variable with the path of a secret's file.
const fileSuffix = "_FILE"

// environment returns the environment, with the secrets that are in files, and a
// sentence for each that cannot be read.
func environment() (values map[string]string, problems []string) {
	values = env.ToMap(os.Environ())
	for _, tag := range settingTags() {
		name := tag.Get("env")
		if tag.Get("secret") != "true" {
			continue
		}
		value, err := lookup(name)
		if err != nil {
			problems = append(problems, err.Error())
			value = unreadable
		}
		if value != "" {
			values[name] = value
		}
	}
	return values, problems
}

// unreadable replaces a secret that is set and cannot be read, so that it does not
// count as missing too.
const unreadable = "unreadable"

// lookup returns the value of a setting that can be in a file, "" if it is not set.
// The error is a sentence that shows no value.
func lookup(name string) (string, error) {
	value, path := os.Getenv(name), os.Getenv(name+fileSuffix)
	switch {
	case path == "":
		return value, nil
	case value != "":
		return "", fmt.Errorf("%[1]s and %[1]s%[2]s are both set: unset one of them", name, fileSuffix)
	}
	content, err := os.ReadFile(path) //nolint:gosec // the operator gives the path
	if err != nil {
		return "", fmt.Errorf("%s%s names a file that cannot be read: %w", name, fileSuffix, err)
	}
	if value = models.Trim(string(content)); value == "" {
		return "", fmt.Errorf("%s%s names an empty file", name, fileSuffix)
	}
	return value, nil
}

// typeForms are the forms of values that cannot be parsed.
var typeForms = map[reflect.Type]string{
	reflect.TypeFor[int]():             "a number",
	reflect.TypeFor[bool]():            "true or false",
	reflect.TypeFor[time.Duration]():   "a time such as 10s",
	reflect.TypeFor[[]time.Duration](): "times such as 10s, separated by commas",
	reflect.TypeFor[[]netip.Prefix]():  "networks such as 10.0.0.0/8, separated by commas",
	reflect.TypeFor[slog.Level]():      "DEBUG, INFO, WARN or ERROR",
}

// wantedForm returns the form that a value fails to have, "" if it is valid. Numbers
// and durations must be above zero, a string must have the form its tag names.
func wantedForm(value any, form string) (want string) {
	switch value := value.(type) {
	case int:
		switch {
		case value == 1 && form != "":
			return "another number: Temporal's SDK needs two"
		case value < 0 || value == 0 && form != "pollers":
			return "a number above 0"
		}
	case time.Duration:
		if value < 0 || value == 0 && form != "or zero" {
			return "a time above 0, such as 10s"
		}
		if form == "response time" && value > webhooks.MaxResponseTime && failpoint("long-responses") == nil {
			return "at most " + webhooks.MaxResponseTime.String()
		}
	case []time.Duration:
		if slices.ContainsFunc(value, func(d time.Duration) bool { return d <= 0 }) {
			return "times above 0, separated by commas"
		}
	case string:
		if value != "" {
			return wantedTextForm(value, form)
		}
	}
	return ""
}

func wantedTextForm(value, form string) (want string) {
	switch form {
	case "host:port":
		_, port, err := net.SplitHostPort(value)
		if _, notNumber := strconv.ParseUint(port, 10, 16); err != nil || notNumber != nil {
			return "host:port"
		}
	case "log format":
		if !slices.Contains(logFormats, value) {
			return strings.Join(logFormats, ", ")
		}
	case "cell":
		if !isCell(value) {
			return "1 to 16 lower-case letters and digits"
		}
	case "url":
		u, err := url.Parse(value)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
			return "http:// or https://, a host and a port"
		}
	case "origin":
		if !isOrigin(value) {
			return "http:// or https:// and a host, without a path"
		}
	}
	return ""
}

func isCell(value string) bool {
	return len(value) <= 16 && strings.Trim(value, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

func isOrigin(value string) bool {
	u, err := url.Parse(value)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" &&
		u.User == nil && u.Path == "" && u.RawQuery == "" && u.Fragment == ""
}

// trustsPrivateClients reports whether clients in a private network may be taken for proxies:
// each would choose the address that its calls count for.
func (s settings) trustsPrivateClients() bool {
	return slices.ContainsFunc(s.TrustedProxies, func(network netip.Prefix) bool {
		return slices.Contains(privateNetworks, network.Masked())
	})
}

// privateNetworks are the whole networks of RFC 1918 and RFC 4193.
var privateNetworks = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("fc00::/7"),
}

// lacksProxies reports whether the service seems to be behind a proxy that it does
// not know: TLS ends at a proxy, and without TRUSTED_PROXIES all clients count as one.
func (s settings) lacksProxies() bool {
	return strings.HasPrefix(s.PublicURL, "https://") && len(s.TrustedProxies) == 0
}

func (s settings) addressRules() webhook.Rules {
	rules := webhook.Rules{AllowNetworks: s.AllowNetworks, AllowHTTP: s.AllowHTTP, Resolver: webhook.SystemResolver()}
	if u, err := url.Parse(s.PublicURL); err == nil {
		rules.OwnHosts = []string{u.Host}
	}
	return rules
}

// sender returns the client that sends webhooks to receivers.
func (s settings) sender() *webhook.Client {
	return webhook.NewClient(webhook.Options{AllowNetworks: s.AllowNetworks, AllowHTTP: s.AllowHTTP, Timeout: s.ResponseTimeout})
}

// mailer returns the client of the mail server, nil if none is set.
func (s settings) mailer() (activities.Mailer, error) {
	if s.SMTPURL == "" {
		return nil, nil //nolint:nilnil // no mail server is a choice
	}
	from, err := netmail.ParseAddress(s.MailFrom)
	if err != nil {
		return nil, errors.New("MAIL_FROM is malformed; it must be Name <address>")
	}
	client, err := mail.New(mail.Options{URL: s.SMTPURL, From: mail.Address{Name: from.Name, Email: from.Address}})
	if err != nil {
		return nil, fmt.Errorf("SMTP_URL is malformed: %w", err)
	}
	return client, nil
}

// openID returns the OpenID Connect provider, nil if none is set.
func (s settings) openID() (*console.OpenIDOptions, error) {
	switch {
	case s.OIDCIssuer == "":
		return nil, nil //nolint:nilnil // no provider is a choice
	case s.OIDCClientID == "":
		return nil, errors.New("OIDC_CLIENT_ID is not set; it is needed with OIDC_ISSUER")
	}
	return &console.OpenIDOptions{Issuer: s.OIDCIssuer, ClientID: s.OIDCClientID, ClientSecret: s.OIDCSecret, Name: s.OIDCName}, nil
}

// pool returns the configuration of the connection pool.
func (s settings) pool(application string) store.Pool {
	return store.Pool{Application: application, MaxConnections: s.DatabaseConns}
}

// serviceOptions returns the service's options, without a waker.
func (s settings) serviceOptions(log *slog.Logger) (store.Options, error) {
	tokens, err := store.NewTokenKeys(s.TokenKeys)
	if err != nil {
		return store.Options{}, fmt.Errorf("TOKEN_SIGNING_KEYS is malformed: %w", err)
	}
	vault, err := store.NewVault(s.SealingKeys)
	if err != nil {
		return store.Options{}, fmt.Errorf("SECRET_SEALING_KEYS is malformed: %w", err)
	}
	return store.Options{
		Tokens:                tokens,
		Vault:                 vault,
		Mails:                 s.SMTPURL != "",
		Issuer:                s.PublicURL,
		Cell:                  s.Cell,
		RetrySchedule:         models.RetrySchedule(s.RetrySchedule),
		MaxRetrying:           s.MaxRetrying,
		ShutOffAfter:          s.ShutOffAfter,
		ReviewPeriods:         models.ReviewPeriods{Reminder: s.ReviewReminder, Escalation: s.ReviewOverdue},
		AddressRules:          s.addressRules(),
		AddressCallsPerMinute: s.AddressCalls,
		Now:                   failpointClock(),
		Log:                   log,
		AfterCommit:           failpoint("after-commit"),
	}, nil
}
