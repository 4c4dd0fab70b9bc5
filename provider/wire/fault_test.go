package wire

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hozo-run/hozo/llm"
)

func TestOverflowTextsOfEachServer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ server, text string }{
		{"Anthropic", "prompt is too long: 213462 tokens > 200000 maximum"},
		{"Anthropic, by size", "Request_too_large: request exceeds the maximum size"},
		{"z.ai", "Prompt too long"},
		{"z.ai, by length", "Prompt exceeds max length"},
		{"z.ai, as a stop reason", "model_context_window_exceeded"},
		{"Bedrock", "ValidationException: Input is too long for requested model."},
		{"OpenAI", "Your input exceeds the context window of this model. Please adjust your input and try again."},
		{"LiteLLM", "Requested tokens exceeds the model's maximum context length of 128,000 tokens"},
		{"an OpenAI-compatible server", "This exceeds maximum context length (32768)"},
		{"LiteLLM, before sending", "ContextWindowExceededError: Context window exceeded"},
		{"Gemini", "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)"},
		{"xAI", "This model's maximum prompt length is 131072 but the request contains 537812 tokens"},
		{"Groq", "Please reduce the length of the messages or completion"},
		{"OpenRouter", "This endpoint's maximum context length is 65536 tokens. However, you requested about 70000"},
		{"Poolside", "input exceeds the maximum allowed input length of 100 tokens"},
		{"Together", "The input (516368 tokens) is longer than the model's context length (262144 tokens)."},
		{"GitHub Copilot", "prompt token count of 140000 exceeds the limit of 128000"},
		{"llama.cpp", "the request exceeds the available context size, try increasing it"},
		{"llama.cpp, by type", `exceed_context_size_error`},
		{"LM Studio", "tokens to keep from the initial prompt is greater than the context length"},
		{"MiniMax", "invalid params, context window exceeds limit"},
		{"Kimi", "Your request exceeded model token limit: 131072"},
		{"Mistral", "Prompt contains 200000 tokens, too large for model with 131072 maximum context length"},
		{"a local server", "Prompt has 9000 tokens, but the configured context size is 8192 tokens"},
		{"Ollama", "prompt too long; exceeded max context length by 12 tokens"},
		{"DashScope", "Range of input length should be [1, 98304]"},
		{"by code", "context_length_exceeded"},
		{"by tokens", "Too many tokens in the prompt"},
		{"by limit", "Token limit exceeded"},
		{"the size of the request, passed on", "413 Request Entity Too Large"},
		{"the size of the request, passed on with a name", "OpenAI API error (413): payload"},
	} {
		t.Run(tt.server, func(t *testing.T) {
			t.Parallel()
			body := `{"error":{"message":` + string(AppendString(nil, tt.text)) + `}}`
			if e := StatusError(400, http.Header{}, []byte(body), time.Time{}); e.Class != llm.ClassContextOverflow {
				t.Errorf("status 400: class %s", e.Class)
			}
			if e := StatusError(429, http.Header{}, []byte(body), time.Time{}); e.Class != llm.ClassRateLimit {
				t.Errorf("status 429: class %s, want a rate limit whatever the text", e.Class)
			}
			if e := StreamError([]byte(body)); e.Class != llm.ClassContextOverflow {
				t.Errorf("in a stream: class %s", e.Class)
			}
		})
	}
}

func TestTextsThatAreNoOverflow(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"Throttling error: Too many tokens, please wait before trying again.",
		"Service unavailable: too many tokens",
		"Rate limit reached: too many tokens per minute",
		"Too many requests: token limit exceeded",
		"messages.1.content: unknown field",
		"the file exceeds the limits of good taste",
		"request 413 failed",
	} {
		if saysOverflow(normalize(text)) {
			t.Errorf("%q is taken for an overflow", text)
		}
	}
}

func TestAnswersWithoutATextAreNoOverflowButAtOneProvider(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		host   string
		status int
		body   string
		want   bool
	}{
		{"api.cerebras.ai", 400, "", true},
		{"api.cerebras.ai", 413, "\n", true},
		{"api.cerebras.ai", 400, "{}", false},
		{"api.cerebras.ai", 422, "", false},
		{"api.notcerebras.ai", 400, "", false},
		{"cerebras.ai.example", 413, "", false},
	} {
		if got := overflowsWithoutText(tt.host, tt.status, []byte(tt.body)); got != tt.want {
			t.Errorf("%s, status %d, body %q: %v", tt.host, tt.status, tt.body, got)
		}
	}
}

func TestStatusComesFirstAndTextSecond(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		status int
		body   string
		class  llm.Class
	}{
		{"a plan limit", 429, `{"error":{"code":"1308","message":"limit reached"}}`, llm.ClassQuota},
		{"the same as a number", 429, `{"error":{"code":1308,"message":"limit reached"}}`, llm.ClassQuota},
		{"a number that only looks like it", 429, `{"error":{"message":"request 1308 was too fast"}}`, llm.ClassRateLimit},
		{"insufficient_quota", 429, `{"error":{"code":"insufficient_quota","message":"x"}}`, llm.ClassQuota},
		{"a monthly limit", 429, `{"message":"Monthly usage limit reached"}`, llm.ClassQuota},
		{"a free limit", 429, `FreeUsageLimitError: come back tomorrow`, llm.ClassQuota},
		{"billing", 429, `{"error":{"message":"Check your billing details"}}`, llm.ClassQuota},
		{"balance", 400, `{"error":{"message":"Your credit balance: no available balance"}}`, llm.ClassQuota},
		{"a credit balance", 400, `{"error":{"message":"Your credit balance is too low to access the API."}}`, llm.ClassQuota},
		{"spent credits", 403, `{"error":"Your team has used all available credits or reached its monthly spending limit."}`, llm.ClassQuota},
		{"a link to a page about billing", 429, `{"error":{"message":"Rate limit reached. Add a payment method at https://x.example/account/billing."}}`,
			llm.ClassRateLimit},
		{"a content filter", 400, `{"error":{"code":"content_filter","message":"The prompt was filtered."}}`, llm.ClassRefused},
		{"payment required", 402, `{}`, llm.ClassQuota},
		{"tokens per minute", 429, `{"error":{"message":"Request too large for TPM: Limit 30000, Requested 40000 tokens"}}`,
			llm.ClassRateLimit},
		{"forbidden", 403, `{"error":{"message":"no access to this model"}}`, llm.ClassAuth},
		{"forbidden for want of money", 403, `{"error":{"message":"quota exceeded"}}`, llm.ClassQuota},
		{"a status inside an id", 400, `{"error":{"message":"request req_1503429 has a bad field"}}`, llm.ClassInvalidRequest},
		{"413 with a text", 413, `Payload Too Large`, llm.ClassContextOverflow},
		{"413 without one", 413, ``, llm.ClassInvalidRequest},
		{"400 without a body", 400, ``, llm.ClassInvalidRequest},
		{"422", 422, `{"detail":[{"loc":["body","x"],"msg":"field required","input":{"secret":"y"}}]}`, llm.ClassInvalidRequest},
		{"408", 408, ``, llm.ClassOverloaded}, {"409", 409, ``, llm.ClassOverloaded},
		{"500", 500, `Internal`, llm.ClassOverloaded}, {"520", 520, ``, llm.ClassOverloaded},
		{"an overflow as 500", 500, `{"error":{"message":"the request exceeds the available context size"}}`,
			llm.ClassContextOverflow},
		{"a page", 502, `<html><head><title>502</title></head></html>`, llm.ClassOverloaded},
		{"an error in a list", 400, `[{"error":{"code":400,"message":"prompt is too long"}}]`, llm.ClassContextOverflow},
		{"an upstream text", 400, `{"error":{"message":"Provider returned error","metadata":{"raw":"{\"m\":\"prompt is too long\"}"}}}`,
			llm.ClassContextOverflow},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := StatusError(tt.status, http.Header{}, []byte(tt.body), time.Time{})
			if e.Class != tt.class || e.Status != tt.status || e.Message == "" {
				t.Errorf("class %s, status %d, message %q; want class %s", e.Class, e.Status, e.Message, tt.class)
			}
			if strings.Contains(e.Message, "secret") || strings.Contains(e.Message, "<") {
				t.Errorf("message %q quotes what it must not", e.Message)
			}
		})
	}
}

func TestFaultsInsideAStream(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		raw     string
		class   llm.Class
		message string
	}{
		{`{"error":{"message":"Overloaded","type":"overloaded_error","code":529}}`, llm.ClassOverloaded, "Overloaded"},
		{`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, llm.ClassOverloaded, "Overloaded"},
		{`{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`, llm.ClassProvider, "Internal server error"},
		{`{"error":{"code":429,"message":"slow"}}`, llm.ClassRateLimit, "slow"},
		{`{"error":{"code":"429","message":"slow"}}`, llm.ClassRateLimit, "slow"},
		{`{"error":"upstream went away"}`, llm.ClassProvider, "upstream went away"},
		{`"upstream went away"`, llm.ClassProvider, "upstream went away"},
		{`{"error":{"type":"invalid_request_error","message":"bad"}}`, llm.ClassInvalidRequest, "bad"},
		{`{"error":{"type":"authentication_error","message":"bad"}}`, llm.ClassAuth, "bad"},
		{`{"error":{"code":"insufficient_quota","message":"no money"}}`, llm.ClassQuota, "no money"},
		{`{"error":{"message":"Rate limit reached"}}`, llm.ClassRateLimit, "Rate limit reached"},
		{`{"error":{"message":"server_busy"}}`, llm.ClassOverloaded, "server_busy"},
		{`{"error":{}}`, llm.ClassProvider, "the provider reported an error without a text"},
	} {
		if e := StreamError([]byte(tt.raw)); e.Class != tt.class || e.Message != tt.message || e.Status != 0 {
			t.Errorf("%s: class %s, message %q, status %d; want %s, %q", tt.raw, e.Class, e.Message, e.Status, tt.class, tt.message)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name   string
		header map[string]string
		want   time.Duration
	}{
		{"none", nil, 0},
		{"seconds", map[string]string{"Retry-After": "3600"}, time.Hour},
		{"a fraction", map[string]string{"Retry-After": "1.5"}, 1500 * time.Millisecond},
		{"milliseconds win", map[string]string{"Retry-After": "9", "Retry-After-Ms": "250.5"}, 250500 * time.Microsecond},
		{"a date", map[string]string{"Retry-After": "Mon, 04 May 2026 10:00:30 GMT"}, 30 * time.Second},
		{"a date against the server's own clock", map[string]string{"Retry-After": "Mon, 04 May 2026 11:00:30 GMT",
			"Date": "Mon, 04 May 2026 11:00:00 GMT"}, 30 * time.Second},
		{"a date that has passed", map[string]string{"Retry-After": "Mon, 04 May 2026 09:00:00 GMT"}, 0},
		{"a date that cannot be read", map[string]string{"Retry-After": "Mon, 99 May 2026"}, 0},
		{"a negative number", map[string]string{"Retry-After": "-5"}, 0},
		{"no number", map[string]string{"Retry-After": "NaN"}, 0},
		{"for ever", map[string]string{"Retry-After": "1e300"}, 365 * 24 * time.Hour},
	} {
		header := http.Header{}
		for name, value := range tt.header {
			header.Set(name, value)
		}
		if got := StatusError(429, header, nil, now).RetryAfter; got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestTheServerMaySayWhetherToRetry(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		value  string
		want   bool
	}{{500, "false", false}, {429, "false", false}, {500, "", true}, {400, "true", true}, {400, "", false}, {401, "true", false}} {
		header := http.Header{"X-Should-Retry": {tt.value}}
		if e := StatusError(tt.status, header, nil, time.Time{}); e.Retryable() != tt.want {
			t.Errorf("%d with %q: retryable %v, want %v", tt.status, tt.value, e.Retryable(), tt.want)
		}
	}
}

func TestMessagesAreCutAtARune(t *testing.T) {
	t.Parallel()
	e := StatusError(500, http.Header{}, []byte(strings.Repeat("ü", 5000)), time.Time{})
	if len(e.Message) > 2000 || !strings.HasSuffix(e.Message, "ü …") {
		t.Errorf("%d bytes ending in %q", len(e.Message), e.Message[len(e.Message)-10:])
	}
}

func TestTransportErrorsAreConnectionErrorsUnlessTheContextEnded(t *testing.T) {
	t.Parallel()
	e, ok := errors.AsType[*llm.Error](TransportError(t.Context(), "while reading", io.ErrUnexpectedEOF))
	if !ok || e.Class != llm.ClassConnection || !e.Retryable() || !errors.Is(e, io.ErrUnexpectedEOF) {
		t.Errorf("error %v, want a retryable connection error with its cause", e)
	}
	cause := errors.New("stalled")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	err := TransportError(ctx, "while reading", context.Canceled)
	if _, isFault := errors.AsType[*llm.Error](err); isFault || !errors.Is(err, cause) {
		t.Errorf("error %v, want the cause of the context and no provider error", err)
	}
}

func TestDollarsAreRoundedUpToMicroDollars(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]llm.MicroUSD{"0.000106": 106, "9.19e-05": 92, "0.00054005": 541, `"0.000588"`: 588, "0": 0,
		"1e-9": 1, "12": 12_000_000, "0.1": 100_000, "0.3": 300_000, "2.000001": 2_000_001} {
		if got, ok := Dollars([]byte(in)); !ok || got != want {
			t.Errorf("%s: %d, %v; want %d", in, got, ok, want)
		}
	}
	for _, in := range []string{"-1", "null", `""`, "1e30", "{}", "NaN", ""} {
		if got, ok := Dollars([]byte(in)); ok {
			t.Errorf("%s is taken for %d", in, got)
		}
	}
}
