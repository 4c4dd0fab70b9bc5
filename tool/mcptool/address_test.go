package mcptool_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/tool/mcptool"
)

// edges returns the first and the last address of a prefix.
func edges(p netip.Prefix) []netip.Addr {
	first := p.Masked().Addr()
	bytes := first.AsSlice()
	for i := p.Bits(); i < len(bytes)*8; i++ {
		bytes[i/8] |= 1 << (7 - i%8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return []netip.Addr{first, last}
}

func TestEveryPrefixIsRefusedFromItsFirstToItsLastAddress(t *testing.T) {
	t.Parallel()
	for _, p := range mcptool.ClosedList() {
		for _, a := range edges(p) {
			if mcptool.CheckAddress(a, true) == nil {
				t.Errorf("%s of %s is allowed", a, p)
			}
		}
	}
	for _, p := range mcptool.PrivateList() {
		for _, a := range edges(p) {
			if mcptool.CheckAddress(a, false) == nil {
				t.Errorf("%s of %s is allowed", a, p)
			}
		}
	}
	if len(mcptool.ClosedList()) < 10 || len(mcptool.PrivateList()) < 15 {
		t.Error("the lists are short")
	}
}

func TestAddressesOfTheTablesOfAttacks(t *testing.T) {
	t.Parallel()
	always := []string{"169.254.169.254", "169.254.170.2", "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fe80::1",
		"fe80::1%eth0", "::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1", "2002:7f00:1::", "2002:a9fe:a9fe::1",
		"::127.0.0.1", "::7f00:1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "fe80::5efe:7f00:1", "2606:4700::5efe:7f00:1", "2606:4700::200:5efe:a00:1",
		"0.0.0.0", "::", "224.0.0.1", "255.255.255.255", "240.0.0.1", "ff02::1", "64:ff9b::10.0.0.1"}
	byFlag := []string{"127.0.0.1", "127.9.9.9", "::1", "::1%lo", "::ffff:127.0.0.1", "::ffff:7f00:1", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
		"100.64.0.1", "192.0.0.1", "198.18.0.1", "198.19.255.255", "fc00::1", "fd12::1", "fec0::1", "::ffff:10.0.0.1", "64:ff9b:1::1"}
	open := []string{"1.1.1.1", "172.15.0.1", "172.32.0.1", "100.63.0.1", "100.128.0.1", "198.17.0.1", "198.20.0.1", "2606:4700::1111", "64:ff9b::101:101",
		"2002:101:101::1", "::ffff:1.1.1.1"}
	for _, text := range always {
		if a := netip.MustParseAddr(text); mcptool.CheckAddress(a, true) == nil || mcptool.CheckAddress(a, false) == nil {
			t.Errorf("%s is allowed", text)
		}
	}
	for _, text := range byFlag {
		a := netip.MustParseAddr(text)
		if mcptool.CheckAddress(a, false) == nil {
			t.Errorf("%s is allowed without the flag", text)
		}
		if err := mcptool.CheckAddress(a, true); err != nil {
			t.Errorf("%s with the flag: %v", text, err)
		}
	}
	for _, text := range open {
		if err := mcptool.CheckAddress(netip.MustParseAddr(text), false); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestTheDialerJudgesTheResolvedAddress uses a name that Check cannot judge: the name server decides what it means.
func TestTheDialerJudgesTheResolvedAddress(t *testing.T) {
	t.Parallel()
	f := &fake{}
	url := strings.Replace(listen(t, f), "127.0.0.1", "localhost", 1)
	c := one(url)
	if problems := mcptool.Check(c.Servers, c.Allow, false); !problems.Has("address-refused", "/mcp/servers/0/url") {
		t.Errorf("localhost passes the check: %v", problems)
	}
	s, _ := connect(t, c) // allowed by the flag
	if len(s.Tools()) == 0 {
		t.Error("the flag does not open loopback addresses")
	}
	c.SetDial(mcptool.DialerFor(false))
	_, notices := connect(t, c)
	if len(notices) != 1 || !strings.Contains(notices[0].Message, "address: the address is private or loopback") {
		t.Errorf("notices = %v", notices)
	}
}

func TestRedirectsAreNotFollowedAndCarryNoHeaders(t *testing.T) {
	t.Parallel()
	for name, location := range map[string]string{
		"metadata": "http://169.254.169.254/latest/meta-data/", "file": "file:///etc/passwd", "gopher": "gopher://127.0.0.1:70/", "ftp": "ftp://127.0.0.1/",
		"other host": "", "same host": "/mcp2",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := &fake{}
			if location == "" {
				location = listen(t, other)
			}
			requests := 0
			url := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests++
				if r.URL.Path != "/mcp" {
					t.Errorf("the redirect to %s was followed", r.URL)
				}
				http.Redirect(w, r, location, http.StatusTemporaryRedirect)
			}))
			c := one(url, func(s *mcptool.Server) { s.Headers = map[string]string{"Authorization": "Bearer CANARY-HEADER"} })
			s, notices := connect(t, c)
			if len(s.Tools()) != 0 || len(notices) != 1 || !strings.Contains(notices[0].Message, "redirect: ") {
				t.Errorf("notices = %v", notices)
			}
			if len(other.seen()) != 0 {
				t.Errorf("the other server saw %v", other.seen())
			}
			if requests > 2 {
				t.Errorf("%d requests for one server", requests)
			}
		})
	}
}

func TestARedirectInTheMiddleOfAJobFailsTheCallOnly(t *testing.T) {
	t.Parallel()
	calls := 0
	f := &fake{onCall: func(w http.ResponseWriter, r *http.Request, m message) {
		if calls++; calls == 1 {
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusPermanentRedirect)
			return
		}
		reply(w, m, done)
	}}
	s, _ := connect(t, one(listen(t, f)))
	if got := call(t.Context(), t, s, "mcp__docs__look", `{}`); !got.IsError || !strings.Contains(got.Text, "redirect") {
		t.Errorf("result = %+v", got)
	}
	if got := call(t.Context(), t, s, "mcp__docs__look", `{}`); got.Text != "done" {
		t.Errorf("result = %+v", got)
	}
}

func TestTheEnvironmentDoesNotChooseAProxy(t *testing.T) {
	proxy := &fake{}
	address := strings.TrimSuffix(listen(t, proxy), "/mcp")
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, address)
	}
	// A host other than a loopback one, since those are never sent to a proxy anyway.
	c := one("http://mcp.example/mcp")
	c.SetDial(mcptool.DialerTo(strings.TrimPrefix(listen(t, &fake{}), "http://")))
	s, _ := connect(t, c)
	if len(s.Tools()) == 0 || len(proxy.seen()) != 0 {
		t.Errorf("tools = %v, the proxy saw %v", names(s), proxy.seen())
	}
}

func TestURLsAndHeadersAreJudgedBeforeAnyConnection(t *testing.T) {
	t.Parallel()
	for text, code := range map[string]string{
		"https://mcp.example/mcp": "", "http://1.1.1.1:8080/mcp?x=1": "", "https://[2606:4700::1111]/": "",
		"": "missing", "stdio:cat": "scheme-unsupported", "file:///etc/passwd": "scheme-unsupported", "ws://a.example/": "scheme-unsupported",
		"mcp+stdio://x": "scheme-unsupported", "/bin/server": "scheme-unsupported", "HTTP:mcp.example": "url-invalid",
		"http://good.example@127.0.0.1/": "url-invalid", "https://user:pw@mcp.example/": "url-invalid", "http://127.0.0.1#@good.example": "url-invalid",
		"http://good.example\\@127.0.0.1/": "url-invalid", "http://a.example/\tb": "url-invalid", "http://a.example\r\nX: y/": "url-invalid", "http:// a.example/": "url-invalid",
		"http://127。0。0。1/": "url-invalid", "http://ｌocalhost/": "url-invalid", "http://%31%32%37.0.0.1/": "url-invalid", "http://0x7f.1/": "url-invalid", "http://2130706433/": "url-invalid",
		"http://017700000001/": "url-invalid", "http://127.1/": "url-invalid", "http://a..example/": "url-invalid", "http:///x": "url-invalid", "http://a.example:0/": "url-invalid",
		"http://a.example:99999/": "url-invalid", "http://a.example:/": "url-invalid",
		"http://127.0.0.1/": "address-refused", "http://localhost/": "address-refused", "http://x.localhost./": "address-refused", "http://[::1]/": "address-refused",
		"http://[::]/": "address-refused", "http://[::ffff:127.0.0.1]/": "address-refused", "http://[::ffff:a9fe:a9fe]/": "address-refused",
		"http://[0:0:0:0:0:ffff:7f00:1]/": "address-refused", "http://[::1%25lo]/": "address-refused", "http://[64:ff9b::7f00:1]/": "address-refused",
		"http://169.254.169.254/": "address-refused", "http://metadata.google.internal/": "address-refused", "http://METADATA.google.internal./": "address-refused",
	} {
		problems := mcptool.Check([]mcptool.Server{{Name: "docs", URL: text}}, nil, false)
		if code == "" && len(problems) > 0 || code != "" && !problems.Has(code, "/mcp/servers/0/url") {
			t.Errorf("%q: %v, want %q", text, problems, code)
		}
		if strings.Contains(fmt.Sprint(problems), "pw") {
			t.Errorf("%q: a credential is shown: %v", text, problems)
		}
	}
	for name, value := range map[string]string{
		"Authorization": "", "X-Key": "a b", "Bad Name": "x", "": "x", "X:Y": "x", "Host": "x", "content-LENGTH": "1", "Mcp-Session-Id": "1", "X-Split": "a\r\nb",
		"X-Nul": "a\x00", "X-Umlaut": "ä", "Transfer-Encoding": "chunked", "Traceparent": "x",
	} {
		problems := mcptool.Check([]mcptool.Server{{Name: "docs", URL: "https://a.example", Headers: map[string]string{name: value}}}, nil, false)
		if good := name == "Authorization" || name == "X-Key"; good != (len(problems) == 0) {
			t.Errorf("header %q: %v", name, problems)
		}
	}
	twice := map[string]string{"X-A": "CANARY-ONE", "x-a": "CANARY-TWO"}
	problems := mcptool.Check([]mcptool.Server{{Name: "docs", URL: "https://a.example", Headers: twice}}, nil, false)
	if !problems.Has("duplicate-header", "/mcp/servers/0/headers/x-a") || strings.Contains(fmt.Sprint(problems), "CANARY") {
		t.Errorf("problems = %v", problems)
	}
}

func TestConnectRefusesWhatCheckRefuses(t *testing.T) {
	t.Parallel()
	_, _, err := mcptool.Connect(t.Context(), mcptool.Config{Servers: []mcptool.Server{{Name: "docs", URL: "http://127.0.0.1:1/"}}, Allow: []string{"mcp__docs__*"}})
	if err == nil || errors.As(err, new(*mcptool.UnavailableError)) {
		t.Errorf("error = %v", err)
	}
}
