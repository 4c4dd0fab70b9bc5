package account

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/job"
)

// credentials are the parts of an account that are sealed, all in one value.
type credentials struct {
	APIKey     string            `json:"apiKey,omitempty"`
	AccessKey  *accessKey        `json:"accessKey,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"`
	TagHeaders map[string]string `json:"tagHeaders,omitempty"`
	// Query is that of an MCP server's address: it often holds a key.
	Query string `json:"query,omitempty"`
}

// accessKey is an access key of AWS.
type accessKey struct {
	ID      string `json:"id"`
	Secret  string `json:"secret"`
	Session string `json:"session,omitempty"`
}

func (c credentials) empty() bool {
	return c.APIKey == "" && c.AccessKey == nil && len(c.Headers) == 0 && len(c.TagHeaders) == 0 && c.Query == ""
}

// String shows nothing.
func (c credentials) String() string { return "[secret]" }

// GoString shows nothing.
func (c credentials) GoString() string { return "[secret]" }

// seal returns c for a column, "" if there is nothing in it.
func (c credentials) seal(keys *secret.Ring, place secret.Place) (string, error) {
	if c.empty() {
		return "", nil
	}
	plain, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	return keys.Seal(place, secret.New(string(plain)))
}

func unseal(keys *secret.Ring, place secret.Place, sealed string) (credentials, error) {
	var c credentials
	if sealed == "" {
		return c, nil
	}
	plain, err := keys.Open(place, sealed)
	if err != nil {
		return c, err
	}
	if json.Unmarshal([]byte(plain.Reveal()), &c) != nil {
		return credentials{}, secret.ErrDamaged // the cause would quote what was opened
	}
	return c, nil
}

// take removes the credentials from a config and returns them. The names of headers stay, with empty values.
func take(config *job.ProviderConfig) credentials {
	c := credentials{APIKey: config.APIKey, Headers: config.Headers, TagHeaders: config.TagHeaders}
	config.APIKey, config.Headers, config.TagHeaders = "", blank(c.Headers), blank(c.TagHeaders)
	if a := config.AWS; a != nil {
		if a.AccessKeyID != "" || a.SecretAccessKey != "" || a.SessionToken != "" {
			c.AccessKey = &accessKey{ID: a.AccessKeyID, Secret: a.SecretAccessKey, Session: a.SessionToken}
		}
		config.AWS = nil
		if a.Region != "" {
			config.AWS = &job.AWSAccess{Region: a.Region}
		}
	}
	return c
}

// blank returns the names of headers without their values.
func blank(headers map[string]string) map[string]string {
	if headers == nil {
		return nil
	}
	names := make(map[string]string, len(headers))
	for name := range headers {
		names[name] = ""
	}
	return names
}

// give puts the credentials back into a config.
func (c credentials) give(config *job.ProviderConfig) {
	config.APIKey = c.APIKey
	config.Headers, config.TagHeaders = fill(config.Headers, c.Headers), fill(config.TagHeaders, c.TagHeaders)
	if k := c.AccessKey; k != nil {
		access := job.AWSAccess{AccessKeyID: k.ID, SecretAccessKey: k.Secret, SessionToken: k.Session}
		if config.AWS != nil {
			access.Region = config.AWS.Region
		}
		config.AWS = &access
	}
}

func fill(names, values map[string]string) map[string]string {
	if names == nil {
		return nil
	}
	filled := make(map[string]string, len(names))
	for name := range names {
		filled[name] = values[name]
	}
	return filled
}

// keep completes what a change gives by what there was: a key if none is given, and the value of each header that is named
// without one.
func (c *credentials) keep(old credentials, removeKey bool) {
	if !removeKey && c.APIKey == "" && c.AccessKey == nil {
		c.APIKey, c.AccessKey = old.APIKey, old.AccessKey
	}
	keepValues(c.Headers, old.Headers)
	keepValues(c.TagHeaders, old.TagHeaders)
}

func keepValues(given, old map[string]string) {
	for name, value := range given {
		if value == "" {
			given[name] = old[name]
		}
	}
}

// missing returns the names of headers that have no value.
func missing(headers map[string]string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if headers[name] == "" {
			names = append(names, name)
		}
	}
	return names
}

// shortestSecret is the length below which a header value is no secret that could be told from ordinary words.
const shortestSecret = 8

// texts returns everything that must not be shown.
func (c credentials) texts() []string {
	all := []string{c.APIKey}
	if k := c.AccessKey; k != nil {
		all = append(all, k.ID, k.Secret, k.Session)
	}
	long := func(value string) {
		for _, word := range append(strings.Fields(value), value) {
			if len(word) >= shortestSecret {
				all = append(all, word)
			}
		}
	}
	for _, headers := range []map[string]string{c.Headers, c.TagHeaders} {
		for _, value := range headers {
			long(value)
		}
	}
	if values, err := url.ParseQuery(c.Query); err == nil {
		for _, list := range values {
			for _, value := range list {
				long(value)
			}
		}
	}
	long(c.Query)
	return slices.DeleteFunc(all, func(text string) bool { return text == "" })
}

// scrub removes the credentials from a text that a server or an adapter wrote, in the encodings in which servers repeat
// what they were sent.
func (c credentials) scrub(text string) string {
	var pairs []string
	for _, value := range c.texts() {
		escaped, _ := json.Marshal(value) // a text always has a form
		forms := []string{value, string(escaped[1 : len(escaped)-1]), url.QueryEscape(value), url.PathEscape(value)}
		if len(value) >= shortestSecret {
			forms = append(forms, hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value))),
				base64.RawStdEncoding.EncodeToString([]byte(value)), base64.RawURLEncoding.EncodeToString([]byte(value)))
		}
		for _, form := range forms {
			pairs = append(pairs, form, "[redacted]")
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
