package jobproc

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/hozo-run/hozo/job"
)

// redacted replaces a credential.
const redacted = "[redacted]"

// shortestSecret is the length in bytes below which a value is a placeholder ("x", "no") rather than a credential;
// replacing it would destroy the text and protect nothing.
const shortestSecret = 4

// Redactor takes the credentials of one spec out of text that may quote them: API keys, header values, and the userinfo
// and query values of addresses, each as it is, escaped for JSON and for URLs, and in base64, alone or inside a longer
// value. It is safe for concurrent use.
type Redactor struct {
	replacer func() *strings.Replacer
	longest  func() int
}

// NewRedactor returns the redactor of spec. The work is done when text is redacted for the first time.
func NewRedactor(spec *job.Spec) *Redactor {
	forms := sync.OnceValue(func() []string { return secretForms(specSecrets(spec)) })
	return &Redactor{
		replacer: sync.OnceValue(func() *strings.Replacer {
			var pairs []string
			for _, form := range forms() {
				pairs = append(pairs, form, redacted)
			}
			return strings.NewReplacer(pairs...)
		}),
		longest: func() int {
			if all := forms(); len(all) > 0 {
				return len(all[0])
			}
			return 0
		},
	}
}

// Redact returns text without the credentials.
func (r *Redactor) Redact(text string) string { return r.replacer().Replace(text) }

// specSecrets returns every value of spec that must not be shown.
func specSecrets(spec *job.Spec) []string {
	var secrets []string
	for _, p := range spec.Providers {
		secrets = append(secrets, p.Keys()...)
		secrets = append(secrets, addressSecrets(p.BaseURL)...)
		secrets = append(secrets, headerSecrets(p.Headers)...)
	}
	if spec.MCP != nil {
		for _, s := range spec.MCP.Servers {
			secrets = append(secrets, addressSecrets(s.URL)...)
			secrets = append(secrets, headerSecrets(s.Headers)...)
		}
	}
	return secrets
}

// headerSecrets returns header values, and what follows the scheme of those that have one ("Bearer …").
func headerSecrets(headers map[string]string) []string {
	var secrets []string
	for _, value := range headers {
		secrets = append(secrets, value)
		if _, credential, ok := strings.Cut(value, " "); ok {
			secrets = append(secrets, credential)
		}
	}
	return secrets
}

// addressSecrets returns the userinfo and the query values of an address, and the address's own spelling of them.
func addressSecrets(address string) []string {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	secrets := []string{u.RawQuery}
	if u.User != nil {
		password, _ := u.User.Password()
		secrets = append(secrets, u.User.String(), u.User.Username(), password)
	}
	for _, values := range u.Query() {
		secrets = append(secrets, values...)
	}
	return secrets
}

// secretForms returns every spelling of the secrets, the longest first so that no part of one is left.
func secretForms(secrets []string) []string {
	seen := map[string]bool{}
	for _, secret := range secrets {
		if len(secret) < shortestSecret {
			continue
		}
		seen[secret] = true
		seen[url.QueryEscape(secret)] = true
		seen[url.PathEscape(secret)] = true
		for _, form := range jsonForms(secret) {
			seen[form] = true
		}
		for _, form := range base64Forms(secret) {
			seen[form] = true
		}
	}
	forms := make([]string, 0, len(seen))
	for form := range seen {
		forms = append(forms, form)
	}
	slices.SortFunc(forms, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return forms
}

// jsonForms returns secret as JSON writes it inside a string, with and without the escapes for HTML.
func jsonForms(secret string) []string {
	html, err := json.Marshal(secret)
	if err != nil {
		panic(err) // a string always has a JSON form
	}
	escaped := string(html[1 : len(html)-1])
	plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(escaped)
	return []string{escaped, plain}
}

// base64Forms returns what every base64 text that contains secret must contain, whatever stands around it: the encoding
// depends on the secret's offset modulo 3, and its first and last characters on its neighbours, so those are left out.
func base64Forms(secret string) []string {
	var forms []string
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		forms = append(forms, encoding.EncodeToString([]byte(secret)), encoding.WithPadding(base64.NoPadding).EncodeToString([]byte(secret)))
		for offset := range 3 {
			text := encoding.EncodeToString([]byte(strings.Repeat("\x00", offset) + secret))
			first := (offset*8 + 5) / 6
			last := (offset + len(secret)) * 8 / 6
			if core := text[first:last]; len(core) >= 2*shortestSecret {
				forms = append(forms, core)
			}
		}
	}
	return forms
}
