package wire

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// Endpoint is one method of one API at one address, with everything that a request carries besides its body. It is
// made once for an account and is safe for concurrent use.
type Endpoint struct {
	url     *url.URL
	header  http.Header
	tags    map[string]string
	preset  map[string]tag
	secrets secrets
	sign    Sign
	// bodyHash returns the hex SHA-256 of a body for sign; nil hashes each body as a whole.
	bodyHash func(Body) string
}

// Sign signs a request in place. The request is complete but for its body, whose hex SHA-256 is bodyHash; its headers and
// address belong to the callee. The error says why no signature can be made.
type Sign func(r *http.Request, bodyHash string) error

// Auth says how an API takes its key: the header and what stands before the key in it.
type Auth struct{ Header, Prefix string }

// NewEndpoint checks the account and returns the endpoint for the method at path below its base URL, which may be "" if
// the path is only known later; see At. fallback is the API's own address; fixed are headers that the API demands. The error is a *problem.Error with everything that is wrong
// with the account: pointers name its fields as a job spec does, and messages never quote a value.
func NewEndpoint(a llm.Account, fallback, path string, auth Auth, fixed map[string]string) (*Endpoint, error) {
	f := findings{}
	e := &Endpoint{url: f.baseURL(a.BaseURL, fallback, path), header: http.Header{
		"Content-Type":    {"application/json"},
		"Accept":          {"application/json"},
		"Accept-Encoding": {"identity"},
		"User-Agent":      {"hozo"},
	}, tags: map[string]string{}}
	for name, value := range fixed {
		e.header.Set(name, value)
	}
	var values []string
	for _, name := range slices.Sorted(maps.Keys(a.Headers)) {
		value := a.Headers[name]
		if f.header("/headers", name, value) {
			e.header.Set(name, value)
		}
		values = append(values, value)
	}
	e.authorize(a, auth, &f)
	for _, name := range slices.Sorted(maps.Keys(a.TagHeaders)) {
		e.addTag(name, a.TagHeaders[name], &f)
		values = append(values, a.TagHeaders[name])
	}
	e.addPreset(a, &f)
	if err := f.list.Err("configure the account"); err != nil {
		return nil, err
	}
	keys := []string{a.APIKey}
	if k := a.SigningKey; k != nil {
		keys = append(keys, k.ID, k.Secret, k.Session)
	}
	e.secrets = newSecrets(keys, values)
	return e, nil
}

func (e *Endpoint) authorize(a llm.Account, auth Auth, f *findings) {
	if a.APIKey == "" {
		return
	}
	if !printable(a.APIKey) || strings.TrimSpace(a.APIKey) != a.APIKey {
		f.add("/apiKey", "holds white space at its ends or characters that no header may hold; check how it was read")
		return
	}
	if name, taken := hasHeader(a.Headers, auth.Header); taken {
		f.add(headerPointer("/headers", name), "is set although apiKey is; give one of them")
	}
	e.header.Set(auth.Header, auth.Prefix+a.APIKey)
}

// hasHeader returns the name under which headers hold a header.
func hasHeader(headers map[string]string, name string) (string, bool) {
	for have := range headers {
		if strings.EqualFold(have, name) {
			return have, true
		}
	}
	return "", false
}

func (e *Endpoint) addTag(name, template string, f *findings) {
	at := headerPointer("/tagHeaders", name)
	if !f.header("/tagHeaders", name, template) {
		return
	}
	if e.header.Get(name) != "" {
		f.add(at, "is already set by headers, the key or the API")
	}
	rest := template
	for _, field := range tagFields {
		rest = strings.ReplaceAll(rest, field, "")
	}
	if strings.ContainsAny(rest, "{}") {
		f.add(at, "holds an unknown field in braces; the fields are %s", strings.Join(tagFields, " "))
	}
	e.tags[name] = template
}

var tagFields = []string{"{jobId}", "{agentId}", "{agentVersion}", "{purpose}"}

// At returns the endpoint of another method of the same API: path is added to the address as it stands, so what is not
// part of an address by itself must have gone through PathPart; query is the encoded query, "" for none. The two share
// everything else. Adapters whose address names the model call it once per dialog.
func (e *Endpoint) At(path, query string) *Endpoint {
	address := *e.url
	escaped := address.EscapedPath() + path
	decoded, err := url.PathUnescape(escaped)
	if err != nil {
		// A stray percent sign stands for itself: the request goes where the caller's text says, not elsewhere.
		decoded, escaped = escaped, ""
	}
	address.Path, address.RawPath, address.RawQuery = decoded, escaped, query
	at := *e
	at.url = &address
	return &at
}

// Signed returns the endpoint with a signature on every request.
func (e *Endpoint) Signed(sign Sign) *Endpoint {
	signed := *e
	signed.sign = sign
	return &signed
}

// PathPart escapes text, such as the id of a model, so that it is one segment of a path. Everything but unreserved
// characters (RFC 3986, section 2.3) is escaped, which is also the form that request signatures are made over.
func PathPart(text string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(text) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if letter || ('0' <= c && c <= '9') || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(digits[c>>4])
		b.WriteByte(digits[c&15])
	}
	return b.String()
}

// Header returns the headers of the requests of one job for one purpose. A tag that no header may hold is an error.
func (e *Endpoint) Header(tags llm.Tags, purpose llm.Purpose) (http.Header, error) {
	if len(e.tags) == 0 && len(e.preset) == 0 {
		return e.header, nil
	}
	header := e.header.Clone()
	fill := strings.NewReplacer("{jobId}", tags.JobID, "{agentId}", tags.AgentID,
		"{agentVersion}", tags.AgentVersion, "{purpose}", string(purpose))
	values := map[string]string{}
	for name, template := range e.tags {
		values[name] = fill.Replace(template)
	}
	for name, value := range e.preset {
		if text := value(tags, purpose); text != "" {
			values[name] = text
		}
	}
	for name, value := range values {
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

// findings collects what is wrong with an account.
type findings struct{ list problem.List }

func (f *findings) add(pointer, format string, args ...any) {
	f.list.Add("provider-invalid", pointer, format, args...)
}

// baseURL returns the address of the method at path, nil if base is none.
func (f *findings) baseURL(base, fallback, path string) *url.URL {
	if base == "" {
		base = fallback
	}
	address, err := url.Parse(base)
	wrong := ""
	switch {
	case err != nil:
		wrong = "is not a URL"
	case address.Scheme != "http" && address.Scheme != "https":
		wrong = "must begin with http:// or https://"
	case address.Hostname() == "":
		wrong = "names no host"
	case !validPort(address.Port()):
		wrong = "names a port that does not exist; ports go from 1 to 65535"
	case address.User != nil:
		wrong = "must not hold a user name or password; use apiKey or headers"
	case address.RawQuery != "" || address.ForceQuery:
		wrong = "must not hold a query; use headers, or an address without one"
	case address.Fragment != "" || strings.Contains(base, "#"):
		wrong = "must not hold a fragment"
	case path != "" && strings.HasSuffix(strings.TrimRight(address.Path, "/"), path):
		wrong = "must end before " + path + ", which is added to it"
	}
	if wrong != "" {
		f.add("/baseUrl", "%s", wrong)
		return nil
	}
	address.Path = strings.TrimRight(address.Path, "/") + path
	address.RawPath = ""
	return address
}

// validPort reports whether port can be connected to; "" is the scheme's own.
func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

// owned are the headers that the HTTP layer or the API sets and an account must not.
var owned = []string{"Accept", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type",
	"Cookie", "Expect", "Host", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// header checks one header of the field at pointer and reports whether it can be sent.
func (f *findings) header(pointer, name, value string) bool {
	at := headerPointer(pointer, name)
	switch {
	case !isToken(name):
		f.add(at, "%q is not a header name", Cut(name))
	case slices.Contains(owned, textproto.CanonicalMIMEHeaderKey(name)):
		f.add(at, "is set by hozo and cannot be changed")
	case !printable(value):
		f.add(at, "holds characters that no header may hold")
	default:
		return true
	}
	return false
}

// headerPointer returns the JSON Pointer (RFC 6901) of a header.
func headerPointer(field, name string) string {
	return field + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
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
