package mail

import (
	"strings"
	"testing"
)

func TestURL(t *testing.T) {
	tests := []struct {
		url  string
		want server
	}{
		{"smtp://mail.example.com:25", server{"mail.example.com", "mail.example.com:25", whenOffered, "", ""}},
		{"smtp://mail.example.com:25/", server{"mail.example.com", "mail.example.com:25", whenOffered, "", ""}},
		{"SMTP://mail.example.com:25?starttls=required", server{"mail.example.com", "mail.example.com:25", required, "", ""}},
		{"smtp://mail.example.com:25?starttls=never", server{"mail.example.com", "mail.example.com:25", inClear, "", ""}},
		{"smtp://u:p@mail.example.com:587", server{"mail.example.com", "mail.example.com:587", required, "u", "p"}},
		{"smtp://u:p@mail.example.com:587?starttls=required", server{"mail.example.com", "mail.example.com:587", required, "u", "p"}},
		{"smtp://me@example.com:p%2F%23%3F%40%3A@mail.example.com:587", server{"mail.example.com", "mail.example.com:587", required, "me@example.com", "p/#?@:"}},
		{"smtps://u:p@mail.example.com:465", server{"mail.example.com", "mail.example.com:465", fromStart, "u", "p"}},
		{"smtps://127.0.0.1:465", server{"127.0.0.1", "127.0.0.1:465", fromStart, "", ""}},
		{"smtp://127.0.0.1:25", server{"127.0.0.1", "127.0.0.1:25", inClear, "", ""}},
		{"smtp://u:p@127.1.2.3:25", server{"127.1.2.3", "127.1.2.3:25", inClear, "u", "p"}},
		{"smtp://u:p@[::1]:25?starttls=never", server{"::1", "[::1]:25", inClear, "u", "p"}},
		{"smtp://u:p@[::ffff:127.0.0.1]:25", server{"::ffff:127.0.0.1", "[::ffff:127.0.0.1]:25", inClear, "u", "p"}},
		{"smtp://u:p@LocalHost:25", server{"LocalHost", "LocalHost:25", inClear, "u", "p"}},
		{"smtp://u:p@localhost:25?starttls=required", server{"localhost", "localhost:25", required, "u", "p"}},
		{"smtp://u:p@localhost.example.com:25", server{"localhost.example.com", "localhost.example.com:25", required, "u", "p"}},
		{"smtp://u:p@10.0.0.1:25", server{"10.0.0.1", "10.0.0.1:25", required, "u", "p"}},
		{"smtp://[2001:db8::1]:25", server{"2001:db8::1", "[2001:db8::1]:25", whenOffered, "", ""}},
	}
	for _, tt := range tests {
		t.Run(tt.url, func(t *testing.T) {
			client, err := New(Options{URL: tt.url, From: testFrom})
			if err != nil {
				t.Fatal(err)
			}
			if client.server != tt.want {
				t.Errorf("%+v, want %+v", client.server, tt.want)
			}
			if client.tls.ServerName != tt.want.host || client.timeout != defaultTimeout {
				t.Errorf("server name %q, timeout %v", client.tls.ServerName, client.timeout)
			}
		})
	}
}

func TestMalformedURL(t *testing.T) {
	const (
		malformed = "the SMTP URL is malformed"
		scheme    = "does not start with smtp"
		host      = "has no host"
		port      = "has no port"
		afterPort = "has a path or fragment after its port"
		user      = "a user without a password, or a password without a user"
		option    = "an option other than one starttls"
	)
	tests := []struct{ name, url, want string }{
		{"empty", "", scheme},
		{"no scheme", "hunter2.example.com:25", scheme},
		{"another scheme", "https://u:hunter2@mail.example.com:25", scheme},
		{"opaque", "smtp:u:hunter2@mail.example.com:25", host},
		{"no host", "smtp://u:hunter2@:25", host},
		{"no port", "smtp://u:hunter2@mail.example.com", port},
		{"port 0", "smtp://u:hunter2@mail.example.com:0", port},
		{"port too large", "smtp://u:hunter2@mail.example.com:65536", port},
		{"bare % in the password", "smtp://u:hunter2%@mail.example.com:25", malformed},
		{"bare / in the password", "smtp://u:hunter2/x@mail.example.com:25", malformed},
		{"bare / in a password of digits", "smtp://u:12/hunter2@mail.example.com:25", afterPort},
		{"bare ? in a password of digits", "smtp://u:12?hunter2@mail.example.com:25", option},
		{"bare # in a password of digits", "smtp://u:12#hunter2@mail.example.com:25", afterPort},
		{"line end", "smtp://u:hunter2@mail.example.com:25\n", malformed},
		{"user alone", "smtp://hunter2@mail.example.com:25", user},
		{"password alone", "smtp://:hunter2@mail.example.com:25", user},
		{"control character in the password", "smtp://u:hunter2%00@mail.example.com:25", "control characters"},
		{"control character in the user", "smtp://u%0A:hunter2@mail.example.com:25", "control characters"},
		{"unknown option", "smtp://u:hunter2@mail.example.com:25?tls=hunter2", option},
		{"a second option", "smtp://u:hunter2@mail.example.com:25?starttls=required&x=1", option},
		{"option twice", "smtp://u:hunter2@mail.example.com:25?starttls=required&starttls=never", option},
		{"malformed option", "smtp://u:hunter2@mail.example.com:25?starttls=%", option},
		{"option's value", "smtp://u:hunter2@mail.example.com:25?starttls=hunter2", "neither required nor never"},
		{"starttls with smtps", "smtps://u:hunter2@mail.example.com:465?starttls=required", "which smtps:// does not take"},
		{"password in clear", "smtp://u:hunter2@mail.example.com:25?starttls=never", "would be sent unencrypted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client, err := New(Options{URL: tt.url, From: testFrom})
			if err == nil {
				t.Fatalf("accepted: %+v", client.server)
			}
			if !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "the SMTP URL") {
				t.Errorf("error %q, want one that contains %q", err, tt.want)
			}
			noSecrets(t, err)
		})
	}
}

func TestSender(t *testing.T) {
	for _, email := range []string{"", "ann", "Ann <ann@example.com>", "grå@example.com", "ann@example.com\r\n"} {
		_, err := New(Options{URL: "smtp://localhost:25", From: Address{Email: email}})
		if err == nil {
			t.Errorf("%q is accepted", email)
		}
		noSecrets(t, err)
	}
}
