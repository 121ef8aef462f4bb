package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func signed(value string) http.Header {
	header := http.Header{}
	header.Set(HeaderSignature, value)
	return header
}

func TestVerify(t *testing.T) {
	const (
		at   = "t=1767323045"
		good = at + ",v1=" + newServiceMAC
	)
	second := time.Second
	tests := []struct {
		name   string
		value  string
		secret string
		after  time.Duration
		want   error
	}{
		{"fresh", good, newSecret, 0, nil},
		{"exactly 300 seconds old", good, newSecret, 300 * second, nil},
		{"a moment over 300 seconds old", good, newSecret, 300*second + 1, ErrStale},
		{"a day old", good, newSecret, 24 * time.Hour, ErrStale},
		{"exactly 300 seconds ahead", good, newSecret, -300 * second, nil},
		{"a moment over 300 seconds ahead", good, newSecret, -300*second - 1, ErrStale},

		{"rotation, receiver has the new secret", at + ",v1=" + newServiceMAC + ",v1=" + oldServiceMAC, newSecret, 0, nil},
		{"rotation, receiver has the old secret", at + ",v1=" + newServiceMAC + ",v1=" + oldServiceMAC, oldSecret, 0, nil},
		{"after the rotation, receiver has the old secret", good, oldSecret, 0, ErrMismatch},
		{"a broken v1 and a valid one", at + ",v1=zz,v1=" + newServiceMAC, newSecret, 0, nil},
		{"an unknown scheme and v1", at + ",v0=abc,v1=" + newServiceMAC + ",v2=def=", newSecret, 0, nil},
		{"time after the signature", "v1=" + newServiceMAC + "," + at, newSecret, 0, nil},

		{"no header", "", newSecret, 0, ErrMissing},
		{"good only under an unknown scheme", at + ",v2=" + newServiceMAC, newSecret, 0, ErrMalformed},
		{"no time", "v1=" + newServiceMAC, newSecret, 0, ErrMalformed},
		{"empty time", "t=,v1=" + newServiceMAC, newSecret, 0, ErrMalformed},
		{"two times", at + "," + good, newSecret, 0, ErrMalformed},
		{"time with a sign", "t=+1767323045,v1=" + newServiceMAC, newSecret, 0, ErrMalformed},
		{"negative time", "t=-5,v1=" + newServiceMAC, newSecret, 0, ErrMalformed},
		{"fractional time", "t=1767323045.5,v1=" + newServiceMAC, newSecret, 0, ErrMalformed},
		{"time beyond 64 bits", "t=99999999999999999999,v1=" + newServiceMAC, newSecret, 0, ErrMalformed},
		{"time that would overflow", "t=9223372036854775807,v1=" + newServiceMAC, newSecret, 0, ErrMalformed},
		{"a part without a value", good + ",v1", newSecret, 0, ErrMalformed},
		{"trailing comma", good + ",", newSecret, 0, ErrMalformed},
		{"endless header", good + strings.Repeat(",v1=00", 1000), newSecret, 0, ErrMalformed},

		{"empty signature", at + ",v1=", newSecret, 0, ErrMismatch},
		{"upper-case hex", at + ",v1=" + strings.ToUpper(newServiceMAC), newSecret, 0, ErrMismatch},
		{"truncated signature", good[:len(good)-2], newSecret, 0, ErrMismatch},
		{"longer signature", good + "00", newSecret, 0, ErrMismatch},
		{"time one second later", "t=1767323046,v1=" + newServiceMAC, newSecret, 0, ErrMismatch},
		{"old and forged is forged", "t=5,v1=" + newServiceMAC, newSecret, 0, ErrMismatch},
		{"empty secret", good, "", 0, ErrSecret},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := Verify(signed(tt.value), []byte(pingBody), tt.secret, pingTime.Add(tt.after))
			if !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}

	t.Run("no header at all", func(t *testing.T) {
		if err := Verify(http.Header{}, nil, newSecret, pingTime); !errors.Is(err, ErrMissing) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("header twice", func(t *testing.T) {
		header := signed(good)
		header.Add(HeaderSignature, good)
		if err := Verify(header, []byte(pingBody), newSecret, pingTime); !errors.Is(err, ErrMalformed) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("signed with an empty key", func(t *testing.T) {
		mac := hmac.New(sha256.New, nil)
		mac.Write([]byte("1767323045." + pingBody))
		header := signed(at + ",v1=" + hex.EncodeToString(mac.Sum(nil)))
		if err := Verify(header, []byte(pingBody), "", pingTime); !errors.Is(err, ErrSecret) {
			t.Errorf("error %v", err)
		}
	})
}

func TestVerifyRequest(t *testing.T) {
	signer := mustSigner(t, newSecret)
	request := func(body string) *http.Request {
		r := httptest.NewRequest(http.MethodPost, "/hook", strings.NewReader(body))
		r.Header = signer.Header("evt_01", "ping", pingTime, []byte(body))
		return r
	}

	t.Run("a delivery", func(t *testing.T) {
		event, err := VerifyRequest(request(pingBody), newSecret, pingTime)
		if err != nil {
			t.Fatal(err)
		}
		if event.ID != "evt_01" || event.Type != "ping" || !event.CreatedAt.Equal(pingTime) ||
			event.OrganizationID != "org_01" || string(event.Data) != `{"message":"hällo"}` {
			t.Errorf("event %+v", event)
		}
	})
	t.Run("the largest body", func(t *testing.T) {
		filled := strings.Replace(pingBody, "hällo", strings.Repeat("x", MaxBody-len(pingBody)+len("hällo")), 1)
		if _, err := VerifyRequest(request(filled), newSecret, pingTime); err != nil {
			t.Error(err)
		}
	})

	otherHeader := func(name, value string) *http.Request {
		r := request(pingBody)
		r.Header.Set(name, value)
		return r
	}
	unreadable := request(pingBody)
	broken := errors.New("connection lost")
	unreadable.Body = io.NopCloser(iotest.ErrReader(broken))
	tests := []struct {
		name    string
		request *http.Request
		now     time.Time
		want    error
	}{
		{"one byte too large", request(strings.Repeat(" ", MaxBody+1)), pingTime, ErrTooLarge},
		{"old", request(pingBody), pingTime.Add(time.Hour), ErrStale},
		{"wrong signature", otherHeader(HeaderSignature, "t=1767323045,v1=00"), pingTime, ErrMismatch},
		{"no signature", httptest.NewRequest(http.MethodPost, "/", strings.NewReader(pingBody)), pingTime, ErrMissing},
		{"authentic but not JSON", request("ping"), pingTime, ErrMalformed},
		{"authentic but no event", request("{}"), pingTime, ErrMalformed},
		{"another event id in the header", otherHeader(HeaderEventID, "evt_02"), pingTime, ErrMalformed},
		{"another event type in the header", otherHeader(HeaderEventType, "issue.created"), pingTime, ErrMalformed},
		{"unreadable", unreadable, pingTime, broken},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			event, err := VerifyRequest(tt.request, newSecret, tt.now)
			if !errors.Is(err, tt.want) || event.ID != "" {
				t.Errorf("event %q, error %v, want %v", event.ID, err, tt.want)
			}
		})
	}
}

func FuzzVerify(f *testing.F) {
	f.Add("t=1767323045,v1="+newServiceMAC, []byte(pingBody), int64(1767323045))
	f.Add("t=1767323045,v1="+newServiceMAC+",v1="+oldServiceMAC, []byte(pingBody), int64(1767323345))
	f.Add("t=1767323045,v1="+emptyBodyMAC, []byte{}, int64(1767323045))
	f.Add("v1=,t=,=,", []byte("x"), int64(0))
	f.Add("t=9223372036854775807,v1=00", []byte("x"), int64(-1))
	f.Fuzz(func(t *testing.T, value string, body []byte, now int64) {
		err := Verify(signed(value), body, newSecret, time.Unix(now, 0))
		switch {
		case err == nil:
			// Then some v1 is the HMAC over the time and the body.
			rest := value[strings.Index(value, "t=")+2:]
			unix, _, _ := strings.Cut(rest, ",")
			mac := hmac.New(sha256.New, []byte(newSecret))
			mac.Write([]byte(unix + "." + string(body)))
			if !strings.Contains(value, "v1="+hex.EncodeToString(mac.Sum(nil))) {
				t.Errorf("%q verifies without a valid signature", value)
			}
		case !errors.Is(err, ErrMissing) && !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrMismatch) && !errors.Is(err, ErrStale):
			t.Errorf("untyped error %v", err)
		}
	})
}
