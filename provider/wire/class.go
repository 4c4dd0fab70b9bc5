package wire

import (
	"bytes"
	"strings"
	"unicode"

	"github.com/hozo-run/hozo/llm"
)

// classByStatus decides by the status first and reads the text only where a status has more than one meaning.
func classByStatus(status int, r report) llm.Class {
	words := r.words()
	switch {
	case status == 402:
		return llm.ClassQuota
	case status == 429:
		if r.spent || (saysQuota(words, r.code) && r.retryDelay == 0) {
			return llm.ClassQuota
		}
		return llm.ClassRateLimit
	case status == 401 || r.reason == invalidKey:
		return llm.ClassAuth
	case status == 403:
		if saysQuota(words, r.code) {
			return llm.ClassQuota
		}
		return llm.ClassAuth
	case status == 408 || status == 409 || status == 425:
		return llm.ClassOverloaded
	case status == 413 && !r.empty:
		return llm.ClassContextOverflow
	case status >= 500:
		if saysOverflow(words) {
			return llm.ClassContextOverflow
		}
		return llm.ClassOverloaded
	case containsAny(words, throttleWords):
		return llm.ClassRateLimit
	case saysOverflow(words):
		return llm.ClassContextOverflow
	case saysQuota(words, r.code):
		return llm.ClassQuota
	case r.code == "content_filter":
		return llm.ClassRefused
	case status == 424:
		return llm.ClassProvider
	}
	return llm.ClassInvalidRequest
}

// classByReport decides about an error that came inside a stream: by the status it names, by its type, by its text.
func classByReport(r report) llm.Class {
	if r.status != 0 {
		return classByStatus(r.status, r)
	}
	words := r.words()
	switch {
	case saysQuota(words, r.code):
		return llm.ClassQuota
	case saysOverflow(words):
		return llm.ClassContextOverflow
	}
	for _, kind := range strings.Fields(r.kind + " " + r.code) {
		if class, ok := classByKind(strings.ToLower(kind)); ok {
			return class
		}
	}
	switch {
	case containsAny(words, rateWords) || containsAny(words, throttleWords):
		return llm.ClassRateLimit
	case containsAny(words, overloadWords):
		return llm.ClassOverloaded
	}
	return llm.ClassProvider
}

func classByKind(kind string) (llm.Class, bool) {
	switch kind {
	case "overloaded_error", "overloaded", "unavailable", "timeout_error", "service_unavailable", "server_busy",
		"server_is_overloaded":
		return llm.ClassOverloaded, true
	case "rate_limit_error", "rate_limit_exceeded", "resource_exhausted", "resourceexhausted", "too_many_requests",
		"slow_down":
		return llm.ClassRateLimit, true
	case "authentication_error", "permission_error", "invalid_api_key":
		return llm.ClassAuth, true
	case "invalid_request_error", "not_found_error", "model_not_found":
		return llm.ClassInvalidRequest, true
	case "billing_error", "insufficient_quota":
		return llm.ClassQuota, true
	case "content_filter", "invalid_prompt", "image_content_policy_violation":
		return llm.ClassRefused, true
	}
	return "", false
}

// statusByName returns the HTTP status that an error of Amazon Bedrock has where it is not reported inside a stream.
func statusByName(name string) (int, bool) {
	switch strings.TrimSuffix(strings.ToLower(name), "exception") {
	case "validation":
		return 400, true
	case "accessdenied", "expiredtoken", "unrecognizedclient", "invalidsignature":
		return 403, true
	case "resourcenotfound":
		return 404, true
	case "modeltimeout":
		return 408, true
	case "modelerror", "modelstreamerror":
		return 424, true
	case "throttling", "modelnotready":
		return 429, true
	case "internalserver":
		return 500, true
	case "serviceunavailable":
		return 503, true
	}
	return 0, false
}

// rateWords, throttleWords and overloadWords are phrases of passing faults, in the form that containsPhrase takes.
var (
	rateWords     = []string{"rate limit", "ratelimit", "too many requests", "429"}
	throttleWords = []string{"throttling error", "throttlingexception", "too many tokens ... please wait"}
	overloadWords = []string{
		"overloaded", "server busy", "servers are currently busy", "currently experiencing high demand",
		"model is at capacity", "service is? temporarily? unavailable", "500", "502", "503", "504", "520", "524", "529",
	}
	quotaWords = []string{
		"gousagelimiterror", "freeusagelimiterror", "monthly usage limit reached", "available balance",
		"insufficient balance", "insufficient quota", "out of budget", "quota exceeded", "exceeded your current quota",
		"billing", "insufficient credits", "credit balance is too low", "used all available credits",
		"monthly spending limit", "reached your specified api usage limits", "subscription sharing usage limit exceeded",
		"subscription sharing workplace individual usage limit exceeded",
		"servicequotaexceededexception",
	}
	overflowWords = []string{
		"prompt is? too long", "request too large", "prompt exceeds max length", "model context window exceeded",
		"input is too long for requested model", "exceeds the context window",
		"exceeds the? model? s? maximum context length of? #", "context window exceeded",
		"input token count ... exceeds the maximum", "maximum prompt length is #", "reduce the length of the messages",
		"maximum context length is # tokens", "exceeds the? maximum allowed input length of # tokens",
		"input # tokens is longer than the model s context length # tokens", "exceeds the limit of #",
		"exceeds the available context size", "greater than the context length", "context window exceeds limit",
		"exceeded model token limit", "too large for model with # maximum context length",
		"prompt has # tokens but the configured context size is # tokens",
		"prompt too long exceeded max? context length", "range of input length should be",
		"context length exceeded", "exceed context size", "too many tokens", "token limit exceeded",
		"413 request? payload? content? entity? body? too large", "api error 413",
	}
)

// planCode is the code by which z.ai reports that a plan is used up.
const planCode = "1308"

func saysQuota(words, code string) bool { return code == planCode || containsAny(words, quotaWords) }

// saysOverflow reports whether an error text says that the prompt was too long. Throttling texts that name tokens do
// not.
func saysOverflow(words string) bool {
	if strings.HasPrefix(words, "service unavailable ") {
		return false
	}
	if containsAny(words, []string{"rate limit", "ratelimit", "too many requests"}) || containsAny(words, throttleWords) {
		return false
	}
	return containsAny(words, overflowWords)
}

// overflowsWithoutText reports whether an answer without a body means that the prompt was too long. At one provider it does;
// at all others it can mean anything.
func overflowsWithoutText(host string, status int, body []byte) bool {
	cerebras := host == "cerebras.ai" || strings.HasSuffix(host, ".cerebras.ai")
	return cerebras && (status == 400 || status == 413) && len(bytes.TrimSpace(body)) == 0
}

func containsAny(words string, phrases []string) bool {
	tokens := strings.Fields(words)
	for _, phrase := range phrases {
		if containsPhrase(tokens, strings.Fields(phrase)) {
			return true
		}
	}
	return false
}

// normalize returns text in lower case as words separated by single spaces. Everything but letters and digits separates
// words, except a comma or point within a number, which is dropped.
func normalize(text string) string {
	var b strings.Builder
	runes := []rune(strings.ToLower(text))
	gap := false
	for i, r := range runes {
		digitsAround := i > 0 && i+1 < len(runes) && unicode.IsDigit(runes[i-1]) && unicode.IsDigit(runes[i+1])
		switch {
		case (r == ',' || r == '.') && digitsAround:
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			if gap && b.Len() > 0 {
				b.WriteByte(' ')
			}
			gap = false
			b.WriteRune(r)
		default:
			gap = true
		}
	}
	return b.String()
}

// containsPhrase looks for a phrase at any word of tokens. In a phrase "#" stands for a number, "..." for up to twelve
// words, and a word with a question mark may be missing.
func containsPhrase(tokens, phrase []string) bool {
	for i := range tokens {
		if phraseAt(tokens[i:], phrase) {
			return true
		}
	}
	return false
}

func phraseAt(tokens, phrase []string) bool {
	if len(phrase) == 0 {
		return true
	}
	want, rest := phrase[0], phrase[1:]
	if want == "..." {
		for i := range min(len(tokens), 12) {
			if phraseAt(tokens[i:], rest) {
				return true
			}
		}
		return false
	}
	word, optional := strings.CutSuffix(want, "?")
	if len(tokens) > 0 && (tokens[0] == word || (word == "#" && isNumber(tokens[0]))) && phraseAt(tokens[1:], rest) {
		return true
	}
	return optional && phraseAt(tokens, rest)
}

func isNumber(word string) bool { return strings.Trim(word, "0123456789") == "" }
