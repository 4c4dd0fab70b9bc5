// Package oidctest runs an identity provider that others wrote, for tests of the sign-in: the example server of
// github.com/zitadel/oidc, in a module of its own so that nothing of it gets into the program. Start builds and starts it
// as a process; Login plays the person and the browser. The package is for tests alone.
package oidctest

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// User is a person at the provider.
type User struct {
	ID, Username, Password, FirstName, LastName, Email string
	EmailVerified                                      bool
}

// Provider is a running identity provider with one client.
type Provider struct {
	Issuer, ClientID, ClientSecret, RedirectURL string

	log *output
	// input is held open: the provider ends with it.
	input io.WriteCloser
}

// output collects what a process writes.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

// Log returns what the provider has logged so far.
func (p *Provider) Log() string {
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	return p.log.text.String()
}

// People are those at the provider: Ada, Bob whose address is not verified, and Eve who has the address of somebody else.
// Each has the password in Password.
func People() []User {
	return []User{
		{ID: "id-ada", Username: "ada", Password: Password, FirstName: "Ada", LastName: "L", Email: "Ada@Example.com", EmailVerified: true},
		{ID: "id-bob", Username: "bob", Password: Password, FirstName: "Bob", LastName: "B", Email: "bob@example.com"},
		{ID: "id-eve", Username: "eve", Password: Password, FirstName: "Eve", LastName: "E", Email: "root@example.com", EmailVerified: true},
	}
}

// Password is that of everybody at the provider.
const Password = "at the provider"

// running are the providers of this process by redirect URL. They end with it: their input does then.
var running struct {
	sync.Mutex
	providers map[string]*Provider
}

// Start returns the provider for a redirect URL; the tests of a process share it. The test is skipped where the modules of
// the provider cannot be had.
func Start(t *testing.T, redirectURL string) *Provider {
	t.Helper()
	running.Lock()
	defer running.Unlock()
	if p := running.providers[redirectURL]; p != nil {
		return p
	}
	dir, err := os.MkdirTemp("", "hozo-idp-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir) // a program that runs needs its file no more
	p := start(t, dir, redirectURL)
	if running.providers == nil {
		running.providers = map[string]*Provider{}
	}
	running.providers[redirectURL] = p
	return p
}

// build makes the program. What it is made of comes from the build cache after the first time.
func build(t *testing.T, dir string) string {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	path := filepath.Join(dir, "idp")
	command := exec.Command("go", "build", "-o", path, ".")
	command.Dir = filepath.Join(filepath.Dir(here), "idp")
	command.Env = append(os.Environ(), "GOFLAGS=-mod=mod -buildvcs=false", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		t.Skipf("the identity provider cannot be built (its modules come from the network): %v: %s", err, out)
	}
	return path
}

func start(t *testing.T, dir, redirectURL string) *Provider {
	t.Helper()
	path := build(t, dir)
	byID := map[string]User{}
	for _, u := range People() {
		byID[u.ID] = u
	}
	text, err := json.Marshal(byID)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "users.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &Provider{ClientID: "web", ClientSecret: "idp-client-secret-canary", RedirectURL: redirectURL, log: &output{}}
	command := exec.Command(path, "-users", file, "-redirect", redirectURL, "-client", p.ClientID, "-secret", p.ClientSecret)
	command.Stderr = p.log
	if p.input, err = command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the identity provider did not start: %v: %s", err, p.Log())
	}
	p.Issuer = strings.TrimSpace(line)
	return p
}

// Login signs a person in at the address to which the server has sent the browser, and returns the query with which the
// browser comes back to the server's callback.
func (p *Provider) Login(t *testing.T, address, username, password string) url.Values {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), p.RedirectURL) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	page := p.visit(t, func() (*http.Response, error) { return browser.Get(address) })
	form := url.Values{"id": {page.Request.URL.Query().Get("authRequestID")}, "username": {username}, "password": {password}}
	answer := p.visit(t, func() (*http.Response, error) { return browser.PostForm(page.Request.URL.String(), form) })
	back, err := url.Parse(answer.Header.Get("Location"))
	if err != nil || !strings.HasPrefix(back.String(), p.RedirectURL) {
		t.Fatalf("the provider did not send the browser back: status %d: %s", answer.StatusCode, p.Log())
	}
	return back.Query()
}

func (p *Provider) visit(t *testing.T, do func() (*http.Response, error)) *http.Response {
	t.Helper()
	response, err := do()
	if err != nil {
		t.Fatalf("%v: %s", err, p.Log())
	}
	_, _ = io.Copy(io.Discard, response.Body) // the page is for people
	_ = response.Body.Close()
	return response
}
