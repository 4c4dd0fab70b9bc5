package wire

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/hozo-run/hozo/llm"
)

// Endpoint is one method of one API at one address, with everything that a request carries besides its body. It is
// made once for an account and is safe for concurrent use.
type Endpoint struct {
	url     *url.URL
	header  http.Header
	tags    map[string]string
	secrets secrets
}

// Auth says how an API takes its key: the header and what stands before the key in it.
type Auth struct{ Header, Prefix string }

// NewEndpoint checks the account and returns the endpoint for the method at path below its base URL. fallback is the
// API's own address; fixed are headers that the API demands. Errors name the field of the account and never quote it.
func NewEndpoint(a llm.Account, fallback, path string, auth Auth, fixed map[string]string) (*Endpoint, error) {
	address, err := baseURL(a.BaseURL, fallback, path)
	if err != nil {
		return nil, err
	}
	e := &Endpoint{url: address, header: http.Header{
		"Content-Type":    {"application/json"},
		"Accept":          {"application/json"},
		"Accept-Encoding": {"identity"},
		"User-Agent":      {"hozo"},
	}, tags: map[string]string{}}
	for name, value := range fixed {
		e.header.Set(name, value)
	}
	var values []string
	for name, value := range a.Headers {
		if err := checkHeader("headers", name, value); err != nil {
			return nil, err
		}
		e.header.Set(name, value)
		values = append(values, value)
	}
	if err := e.authorize(a, auth); err != nil {
		return nil, err
	}
	for name, template := range a.TagHeaders {
		if err := e.addTag(name, template); err != nil {
			return nil, err
		}
		values = append(values, template)
	}
	e.secrets = newSecrets(a.APIKey, values)
	return e, nil
}

func (e *Endpoint) authorize(a llm.Account, auth Auth) error {
	if a.APIKey == "" {
		return nil
	}
	if !printable(a.APIKey) || strings.TrimSpace(a.APIKey) != a.APIKey {
		return errors.New("apiKey: holds white space at its ends or characters that no header may hold; " +
			"check how it was read")
	}
	if hasHeader(a.Headers, auth.Header) {
		return fmt.Errorf("headers: %s is set although apiKey is; give one of them", auth.Header)
	}
	e.header.Set(auth.Header, auth.Prefix+a.APIKey)
	return nil
}

func hasHeader(headers map[string]string, name string) bool {
	for have := range headers {
		if strings.EqualFold(have, name) {
			return true
		}
	}
	return false
}

func (e *Endpoint) addTag(name, template string) error {
	if err := checkHeader("tagHeaders", name, template); err != nil {
		return err
	}
	if e.header.Get(name) != "" {
		return fmt.Errorf("tagHeaders: %s is already set by headers, the key or the API", name)
	}
	rest := template
	for _, field := range tagFields {
		rest = strings.ReplaceAll(rest, field, "")
	}
	if strings.ContainsAny(rest, "{}") {
		return fmt.Errorf("tagHeaders: %s holds an unknown field in braces; the fields are %s", name,
			strings.Join(tagFields, " "))
	}
	e.tags[name] = template
	return nil
}

var tagFields = []string{"{jobId}", "{agentId}", "{agentVersion}", "{purpose}"}

// Header returns the headers of the requests of one job for one purpose. A tag that no header may hold is an error.
func (e *Endpoint) Header(tags llm.Tags, purpose llm.Purpose) (http.Header, error) {
	if len(e.tags) == 0 {
		return e.header, nil
	}
	header := e.header.Clone()
	fill := strings.NewReplacer("{jobId}", tags.JobID, "{agentId}", tags.AgentID,
		"{agentVersion}", tags.AgentVersion, "{purpose}", string(purpose))
	for name, template := range e.tags {
		value := fill.Replace(template)
		if !printable(value) {
			return nil, fmt.Errorf("tagHeaders: %s would hold characters that no header may hold", name)
		}
		header.Set(name, value)
	}
	return header, nil
}

// Host returns the host of the address in lower case, without a port.
func (e *Endpoint) Host() string { return strings.ToLower(e.url.Hostname()) }

// clean removes the account's credentials from an error.
func (e *Endpoint) clean(err error) error {
	if f, ok := errors.AsType[*llm.Error](err); ok && f == err {
		f.Message = Cut(e.secrets.clean(f.Message))
		f.Code = e.secrets.clean(f.Code)
		f.RequestID = e.secrets.clean(f.RequestID)
		if f.Err != nil {
			f.Err = e.cleanCause(f.Err)
		}
	}
	return err
}

// cleanCause replaces a cause whose text holds a credential.
func (e *Endpoint) cleanCause(err error) error {
	text := err.Error()
	if cleaned := e.secrets.clean(text); cleaned != text {
		return errors.New(cleaned)
	}
	return err
}

func baseURL(base, fallback, path string) (*url.URL, error) {
	if base == "" {
		base = fallback
	}
	address, err := url.Parse(base)
	switch {
	case err != nil:
		return nil, errors.New("baseUrl: is not a URL")
	case address.Scheme != "http" && address.Scheme != "https":
		return nil, errors.New("baseUrl: must begin with http:// or https://")
	case address.Hostname() == "":
		return nil, errors.New("baseUrl: names no host")
	case address.User != nil:
		return nil, errors.New("baseUrl: must not hold a user name or password; use apiKey or headers")
	case address.RawQuery != "" || address.ForceQuery:
		return nil, errors.New("baseUrl: must not hold a query; use headers, or an address without one")
	case address.Fragment != "" || strings.Contains(base, "#"):
		return nil, errors.New("baseUrl: must not hold a fragment")
	case strings.HasSuffix(strings.TrimRight(address.Path, "/"), path):
		return nil, fmt.Errorf("baseUrl: must end before %s, which is added to it", path)
	}
	address.Path = strings.TrimRight(address.Path, "/") + path
	address.RawPath = ""
	return address, nil
}

// owned are the headers that the HTTP layer or the API sets and an account must not.
var owned = []string{"Accept", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type",
	"Cookie", "Expect", "Host", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

func checkHeader(field, name, value string) error {
	if !isToken(name) {
		return fmt.Errorf("%s: %q is not a header name", field, Cut(name))
	}
	if slices.Contains(owned, textproto.CanonicalMIMEHeaderKey(name)) {
		return fmt.Errorf("%s: %s is set by hozo and cannot be changed", field, name)
	}
	if !printable(value) {
		return fmt.Errorf("%s: the value of %s holds characters that no header may hold", field, name)
	}
	return nil
}

func isToken(name string) bool {
	if name == "" || len(name) > 200 {
		return false
	}
	for _, c := range []byte(name) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && !('0' <= c && c <= '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return true
}

func printable(value string) bool {
	for _, c := range []byte(value) {
		if (c < ' ' && c != '\t') || c == 0x7f {
			return false
		}
	}
	return true
}
