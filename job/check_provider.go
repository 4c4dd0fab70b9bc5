package job

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/llm"
)

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// providers checks the accounts. Their values may be credentials, so messages name places and rules, never values.
func (c *checker) providers() {
	for _, id := range sortedKeys(c.spec.Providers) {
		p, pointer := c.spec.Providers[id], pointerTo("/providers", id)
		c.id(pointer, id)
		switch {
		case p.API == "":
			c.addHint(codeRequired, pointer+"/api", closestHint("", APIs()), "must not be empty")
		case !slices.Contains(APIs(), p.API):
			c.addHint(codeUnknown, pointer+"/api", closestHint(p.API, APIs()), "unknown API %q", shorten(p.API))
		case len(p.Script) > 0 && p.API != APIScripted:
			c.add(codeInvalid, pointer+"/script", "only the API %q takes a script", APIScripted)
		}
		if string(p.Script) == "null" {
			c.add(codeWrongType, pointer+"/script", "must not be null")
		}
		c.baseURL(pointer+"/baseUrl", p.BaseURL)
		if !headerValue(p.APIKey) {
			c.addHint(codeInvalid, pointer+"/apiKey", "look for a line break at its end", "has spaces around it or a control character in it")
		}
		c.awsAccess(pointer, p)
		c.headers(pointer+"/headers", p.Headers)
		c.headers(pointer+"/tagHeaders", p.TagHeaders)
		c.tagTemplates(pointer, p)
		c.oneOf(pointer+"/tagPreset", p.TagPreset, llm.TagPresets()...)
		c.apiVersion(pointer+"/apiVersion", p)
		for _, model := range sortedKeys(p.Models) {
			c.modelConfig(pointerTo(pointer+"/models", model), model, p.Models[model])
		}
	}
}

// awsAccess refuses an access that is incomplete, of which a part could not go into a header or a host name, or that
// nothing would use.
func (c *checker) awsAccess(pointer string, p ProviderConfig) {
	a, at := p.AWS, pointer+"/aws"
	if a == nil {
		return
	}
	if p.API != APIBedrockConverse {
		c.add(codeInvalid, at, "only the API %q takes an access of AWS", APIBedrockConverse)
	}
	for _, part := range []struct{ name, value string }{
		{"accessKeyId", a.AccessKeyID}, {"secretAccessKey", a.SecretAccessKey}, {"sessionToken", a.SessionToken},
	} {
		if !headerValue(part.value) {
			c.addHint(codeInvalid, at+"/"+part.name, "look for a line break at its end", "has spaces around it or a control character in it")
		}
	}
	keyed := a.AccessKeyID != "" || a.SecretAccessKey != "" || a.SessionToken != ""
	switch {
	case keyed && a.AccessKeyID == "":
		c.add(codeRequired, at+"/accessKeyId", "must be given together with secretAccessKey")
	case keyed && a.SecretAccessKey == "":
		c.add(codeRequired, at+"/secretAccessKey", "must be given together with accessKeyId")
	case keyed && p.APIKey != "":
		c.addHint(codeDuplicate, pointer+"/apiKey", "keep one of them", "is a second way to authorize requests beside the access key in aws")
	}
	if !regionName(a.Region) {
		c.addHint(codeInvalid, at+"/region", `for example "eu-central-1"`, "is no name of a region")
	}
}

// regionName reports whether text can be a region: it becomes a part of a host name.
func regionName(text string) bool {
	return len(text) <= 64 && !strings.HasPrefix(text, "-") && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

func (c *checker) apiVersion(pointer string, p ProviderConfig) {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789.-"
	switch {
	case p.APIVersion == "":
	case p.API != APIAzureOpenAI:
		c.add(codeInvalid, pointer, "only the API %q takes a version", APIAzureOpenAI)
	case strings.Trim(strings.ToLower(p.APIVersion), letters) != "":
		c.add(codeInvalid, pointer, "is no version: versions hold letters, digits, points and hyphens")
	}
}

// baseURL refuses what is not the plain address of an API. What a URL can carry beside that is a credential or is lost
// when the path of a method is added.
func (c *checker) baseURL(pointer, text string) {
	if text == "" {
		return
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		c.add(codeInvalid, pointer, "is no URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		c.addHint(codeInvalid, pointer, `for example "https://api.example.com/v1"`, "must begin with http:// or https:// and a host")
	case u.User != nil:
		c.addHint(codeInvalid, pointer, "put the key into apiKey or headers", "must have no user information")
	case strings.ContainsAny(text, "?#"):
		c.addHint(codeInvalid, pointer, "put credentials into apiKey or headers", "must have no query and no fragment")
	}
}

// ownHeaders are set by the transport; a value of the spec would be ignored or would break the request.
var ownHeaders = []string{"host", "content-length", "transfer-encoding", "connection", "trailer", "te", "upgrade"}

func (c *checker) headers(pointer string, headers map[string]string) {
	first := map[string]string{}
	for _, name := range sortedKeys(headers) {
		at, lower := pointerTo(pointer, name), strings.ToLower(name)
		other, twice := first[lower]
		switch {
		case !headerName(name):
			c.add(codeInvalid, at, "is no name of an HTTP header")
		case slices.Contains(ownHeaders, lower):
			c.add(codeInvalid, at, "the header %q is set by the transport", name)
		case twice:
			c.add(codeDuplicate, at, "is the same header as %q: names of headers have no case", other)
		case !headerValue(headers[name]):
			c.add(codeInvalid, at, "has spaces around it or a control character in it")
		}
		first[lower] = name
	}
}

// headerName reports whether name is a token of RFC 9110, section 5.6.2.
func headerName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		alphanumeric := r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		return !alphanumeric && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// headerValue reports whether value can be the value of a header without being changed on the way.
func headerValue(value string) bool {
	return strings.TrimSpace(value) == value && !strings.ContainsFunc(value, func(r rune) bool { return isControl(r) && r != '\t' })
}

// tagTemplates refuses placeholders that nothing fills, and a header that is set in both ways.
func (c *checker) tagTemplates(pointer string, p ProviderConfig) {
	plain := map[string]bool{}
	for name := range p.Headers {
		plain[strings.ToLower(name)] = true
	}
	for _, name := range sortedKeys(p.TagHeaders) {
		at := pointerTo(pointer+"/tagHeaders", name)
		if !knownPlaceholders(p.TagHeaders[name]) {
			c.addHint(codeUnknown, at, "known: {jobId}, {agentId}, {agentVersion}, {purpose}", "has an unknown placeholder or a brace without its partner")
		}
		if plain[strings.ToLower(name)] {
			c.add(codeDuplicate, at, "the header is set in headers too")
		}
	}
}

func knownPlaceholders(template string) bool {
	rest := strings.NewReplacer("{jobId}", "", "{agentId}", "", "{agentVersion}", "", "{purpose}", "").Replace(template)
	return !strings.ContainsAny(rest, "{}")
}

func (c *checker) modelConfig(pointer, id string, m ModelConfig) {
	if strings.TrimSpace(id) == "" {
		c.add(codeRequired, pointer, "the id of a model must not be empty")
	}
	c.tokens(pointer+"/contextWindow", m.ContextWindow)
	c.tokens(pointer+"/maxOutputTokens", m.MaxOutputTokens)
	if m.ContextWindow != nil && m.MaxOutputTokens != nil && *m.ContextWindow > 0 && *m.MaxOutputTokens > *m.ContextWindow {
		c.add(codeOutOfRange, pointer+"/maxOutputTokens", "must not exceed contextWindow")
	}
	if m.Price != nil {
		c.price(pointer+"/price", m.Price)
	}
	seen := map[llm.Level]bool{}
	for i, level := range m.ThinkingLevels {
		at := pointer + "/thinkingLevels/" + strconv.Itoa(i)
		if level == "" {
			c.add(codeRequired, at, "must not be empty")
		} else if seen[level] {
			c.add(codeDuplicate, at, "the level %q is given twice", level)
		}
		seen[level] = true
		c.level(at, level)
	}
	if m.Compat != nil {
		c.compat(pointer+"/compat", m.Compat)
	}
}

func (c *checker) tokens(pointer string, n *int64) {
	if n != nil && (*n < 1 || *n > maxInteger) {
		c.add(codeOutOfRange, pointer, "must be 1 or more tokens, not %d", *n)
	}
}

// price refuses what a price list cannot mean. Amounts below zero come from Go code only.
func (c *checker) price(pointer string, p *llm.Price) {
	c.rates(pointer, p.Input, p.Output, p.CacheRead, p.CacheWrite)
	above := map[int64]bool{}
	for i, tier := range p.Tiers {
		at := fmt.Sprintf("%s/tiers/%d", pointer, i)
		if tier.Above < 1 || tier.Above > maxInteger {
			c.add(codeOutOfRange, at+"/promptAbove", "must be 1 or more tokens, not %d", tier.Above)
		} else if above[tier.Above] {
			c.add(codeDuplicate, at+"/promptAbove", "two tiers begin above %d tokens", tier.Above)
		}
		above[tier.Above] = true
		c.rates(at, tier.Input, tier.Output, tier.CacheRead, tier.CacheWrite)
	}
}

func (c *checker) rates(pointer string, input, output llm.USD, cacheRead, cacheWrite *llm.USD) {
	for _, rate := range []struct {
		name string
		usd  *llm.USD
	}{
		{"inputPerMTok", &input}, {"outputPerMTok", &output}, {"cacheReadPerMTok", cacheRead}, {"cacheWritePerMTok", cacheWrite},
	} {
		if rate.usd != nil && *rate.usd < 0 {
			c.add(codeOutOfRange, pointer+"/"+rate.name, "must not be negative")
		}
	}
}

func (c *checker) compat(pointer string, compat *llm.Compat) {
	c.oneOf(pointer+"/maxTokensField", compat.MaxTokensField, "max_tokens", "max_completion_tokens")
	c.oneOf(pointer+"/thinkingDialect", compat.ThinkingDialect,
		"none", "openai", "openrouter", "deepseek", "zai", "qwen", "qwen-chat-template", "together", "effort", "budget", "adaptive", "level")
	c.oneOf(pointer+"/textToolCalls", compat.TextToolCalls, append([]string{llm.TextCallsOff, llm.TextCallsAuto}, llm.TextCallFormats()...)...)
	if compat.ToolsAsText != nil && *compat.ToolsAsText && compat.TextToolCalls == llm.TextCallsOff {
		c.add(codeInvalid, pointer+"/toolsAsText", "needs textToolCalls: a model that is given its tools as text answers in text")
	}
	c.oneOf(pointer+"/method", compat.Method, "chat", "responses")
	if strings.TrimSpace(compat.Deployment) != compat.Deployment {
		c.add(codeInvalid, pointer+"/deployment", "has spaces around it")
	}
	for _, level := range sortedKeys(compat.ThinkingEfforts) {
		at := pointerTo(pointer+"/thinkingEfforts", string(level))
		if level == "" {
			c.add(codeRequired, at, "the level must not be empty")
		}
		c.level(at, level)
		c.text(at, compat.ThinkingEfforts[level], "it is the word on the wire")
	}
}

func (c *checker) oneOf(pointer, word string, known ...string) {
	if word != "" && !slices.Contains(known, word) {
		c.addHint(codeUnknown, pointer, closestHint(word, known), "unknown value %q", shorten(word))
	}
}
