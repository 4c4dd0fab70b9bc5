package wire

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

var testAuth = Auth{Header: "Authorization", Prefix: "Bearer "}

func newEndpoint(a llm.Account) (*Endpoint, error) {
	return NewEndpoint(a, "https://api.example.com/v1", "/chat", testAuth, map[string]string{"X-Version": "1"})
}

func TestBaseURLs(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                               "https://api.example.com/v1/chat",
		"http://127.0.0.1:8080/v1":       "http://127.0.0.1:8080/v1/chat",
		"https://h.example/":             "https://h.example/chat",
		"https://h.example/a/b///":       "https://h.example/a/b/chat",
		"HTTP://H.example":               "http://H.example/chat",
		"http://[::1]:8080/v1":           "http://[::1]:8080/v1/chat",
		"https://h.example/with%20space": "https://h.example/with%20space/chat",
	} {
		e, err := newEndpoint(llm.Account{BaseURL: in})
		if err != nil || e.url.String() != want {
			t.Errorf("%q: %v, error %v; want %s", in, e, err, want)
		}
	}
	for _, in := range []string{"h.example/v1", "ftp://h.example", "file:///etc/passwd", "https://", "https:///v1",
		"https://user:canary@h.example", "https://h.example?key=canary", "https://h.example?", "https://h.example#canary",
		"https://h.example/#", "http://good.example@127.0.0.1/", "https://h.example/v1/chat", "https://h.example/v1/chat/",
		"https://h .example", "http://h.example\r\nX: y", "http://h.example:port", "http://h.example:0/v1", "http://h.example:65536", "//h.example", "javascript:alert(1)"} {
		_, err := newEndpoint(llm.Account{BaseURL: in})
		if got := pointers(err); !slices.Equal(got, []string{"/baseUrl"}) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: error %v, want one that names baseUrl and quotes nothing", in, err)
		}
	}
}

func TestAnAddressCanNameTheModel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ base, path, query, want string }{
		{"https://h.example/v1beta/", "/models/" + PathPart("gemini-2.5-pro") + ":streamGenerateContent", "alt=sse",
			"https://h.example/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"},
		{"https://h.example", "/model/" + PathPart("arn:aws:bedrock:eu-west-1:1:inference-profile/us.m-v1:0") + "/stream", "",
			"https://h.example/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Ainference-profile%2Fus.m-v1%3A0/stream"},
		{"https://h.example/with%20space", "/" + PathPart("a b?c#d/../%2e\u00fc"), "",
			"https://h.example/with%20space/a%20b%3Fc%23d%2F..%2F%252e%C3%BC"},
		{"https://h.example/v1", "", "api-version=v1", "https://h.example/v1?api-version=v1"},
		{"https://h.example", "/100%", "", "https://h.example/100%25"},
	} {
		e, err := NewEndpoint(llm.Account{BaseURL: tt.base, APIKey: "k"}, "", "", testAuth, nil)
		if err != nil {
			t.Fatal(err)
		}
		before := e.url.String()
		at := e.At(tt.path, tt.query)
		if got := at.url.String(); got != tt.want {
			t.Errorf("%s at %q: %s, want %s", tt.base, tt.path, got, tt.want)
		}
		if e.url.String() != before || at.header.Get("Authorization") != "Bearer k" {
			t.Errorf("%s: the endpoint changed to %s, or its headers did not go along", tt.base, e.url)
		}
	}
}

func TestHeadersAreChecked(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		account llm.Account
		pointer string
	}{
		{"a line end in a value", llm.Account{Headers: map[string]string{"X-A": "canary\r\nX-B: c"}}, "/headers/X-A"},
		{"a line end in a name", llm.Account{Headers: map[string]string{"X-A\r\nX-B": "c"}}, "/headers/X-A\r\nX-B"},
		{"an empty name", llm.Account{Headers: map[string]string{"": "c"}}, "/headers/"},
		{"a host", llm.Account{Headers: map[string]string{"host": "other.example"}}, "/headers/host"},
		{"a length", llm.Account{Headers: map[string]string{"content-length": "1"}}, "/headers/content-length"},
		{"an encoding", llm.Account{Headers: map[string]string{"Accept-Encoding": "gzip"}}, "/headers/Accept-Encoding"},
		{"a key with a line end", llm.Account{APIKey: "canary\n"}, "/apiKey"},
		{"a key with a space", llm.Account{APIKey: " canary"}, "/apiKey"},
		{"a key twice", llm.Account{APIKey: "canary", Headers: map[string]string{"authorization": "x"}}, "/headers/authorization"},
		{"a tag with a line end", llm.Account{TagHeaders: map[string]string{"X-A": "a\nb"}}, "/tagHeaders/X-A"},
		{"a tag with an unknown field", llm.Account{TagHeaders: map[string]string{"X-A": "{user}"}}, "/tagHeaders/X-A"},
		{"a tag with half a field", llm.Account{TagHeaders: map[string]string{"X-A": "{jobId"}}, "/tagHeaders/X-A"},
		{"a tag over a header", llm.Account{Headers: map[string]string{"X-A": "1"},
			TagHeaders: map[string]string{"x-a": "2"}}, "/tagHeaders/x-a"},
		{"a tag over the key", llm.Account{APIKey: "canary", TagHeaders: map[string]string{"authorization": "2"}}, "/tagHeaders/authorization"},
	} {
		_, err := newEndpoint(tt.account)
		if got := pointers(err); !slices.Equal(got, []string{tt.pointer}) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: error %v, want one at %s that quotes nothing", tt.name, err, tt.pointer)
		}
	}
}

func TestEverythingWrongWithAnAccountIsReported(t *testing.T) {
	t.Parallel()
	_, err := newEndpoint(llm.Account{BaseURL: "ftp://h.example", APIKey: "canary\n",
		Headers:    map[string]string{"host": "x", "a b": "c", "X-A": "fine"},
		TagHeaders: map[string]string{"X-B": "{user}", "x-a": "twice"}})
	want := []string{"/baseUrl", "/headers/a b", "/headers/host", "/apiKey", "/tagHeaders/X-B", "/tagHeaders/x-a"}
	if got := pointers(err); !slices.Equal(got, want) {
		t.Errorf("problems at %q, want %q: %v", got, want, err)
	}
}

// pointers returns where the problems of err are.
func pointers(err error) []string {
	var at []string
	for _, p := range problem.Of(err) {
		at = append(at, p.Pointer)
	}
	return at
}

func TestTagHeadersAreFilled(t *testing.T) {
	t.Parallel()
	e, err := newEndpoint(llm.Account{APIKey: "key", Headers: map[string]string{"x-static": "s"}, TagHeaders: map[string]string{
		"x-tags": "{jobId}/{agentId}@{agentVersion} for {purpose}", "x-fixed": "f"}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := e.Header(llm.Tags{JobID: "j{purpose}", AgentID: "a", AgentVersion: "2"}, llm.PurposeTurn)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"X-Tags": "j{purpose}/a@2 for turn", "X-Fixed": "f", "X-Static": "s",
		"Authorization": "Bearer key", "X-Version": "1", "Content-Type": "application/json", "Accept-Encoding": "identity"} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if _, err := e.Header(llm.Tags{JobID: "j\r\nX-Evil: 1"}, llm.PurposeTurn); err == nil {
		t.Error("a job id with a line end was put into a header")
	}
	if other, _ := e.Header(llm.Tags{}, llm.PurposeCheck); other.Get("X-Tags") == h.Get("X-Tags") {
		t.Error("the headers of one job reached another")
	}
}

func TestSecretsAreFoundInEveryForm(t *testing.T) {
	t.Parallel()
	const key, header = `s"k/é+canary`, "Basic dXNlcjpwYXNzd29yZA=="
	s := newSecrets([]string{key}, []string{header, "true"})
	for name, text := range map[string]string{
		"raw": key, "quoted": `s\"k/é+canary`, "quoted with slashes": `s\"k\/é+canary`, "in a query": "s%22k%2F%C3%A9%2Bcanary",
		"in a path": "s%22k%2F%C3%A9+canary", "the whole header": header, "a word of the header": "dXNlcjpwYXNzd29yZA==",
		"base64":          base64.StdEncoding.EncodeToString([]byte(key)),
		"base64 inside":   base64.StdEncoding.EncodeToString([]byte("user:" + key + ":more")),
		"base64 inside 2": base64.URLEncoding.EncodeToString([]byte("us:" + key + "x")),
		"base64 inside 3": base64.StdEncoding.EncodeToString([]byte("abc" + key)),
	} {
		got := s.clean("before " + text + " after")
		if !strings.Contains(got, redacted) || !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") {
			t.Errorf("%s: %q", name, got)
		}
	}
	for name, text := range map[string]string{
		"cut": "before " + key[:len(key)-2] + cutMark, "ended by its own quote": `before s\"k/é+can`,
		"base64 cut": "before " + base64.StdEncoding.EncodeToString([]byte("abc" + key))[:16],
	} {
		if got := s.clean(text); !strings.Contains(got, redacted) || strings.Contains(got, "k/é") || strings.Contains(got, "cyJr") {
			t.Errorf("%s: %q became %q, want it without the beginning of a secret", name, text, got)
		}
	}
	if got := s.clean("as it was" + cutMark); got != "as it was"+cutMark {
		t.Errorf("a cut text without a secret became %q", got)
	}
	if got := s.clean("true"); got != "true" {
		t.Errorf("an ordinary word became %q", got)
	}
}

func TestASignatureIsMadeForEachRequestAndItsFaultIsOurs(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sum := sha256.Sum256(body)
		if want := r.Method + " " + r.URL.EscapedPath() + " " + hex.EncodeToString(sum[:]); r.Header.Get("X-Signature") != want {
			t.Errorf("signature %q, want %q", r.Header.Get("X-Signature"), want)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, events("x", "END"))
	}))
	defer server.Close()
	plain, err := NewEndpoint(llm.Account{BaseURL: server.URL}, "", "/chat/a%2Fb", testAuth, nil)
	if err != nil {
		t.Fatal(err)
	}
	signed := plain.Signed(func(r *http.Request, hash string) error {
		r.Header.Set("X-Signature", r.Method+" "+r.URL.EscapedPath()+" "+hash)
		r.URL.RawQuery = "changed"
		return nil
	})
	for range 2 {
		if _, err := signed.Exchange(t.Context(), signed.header, Body{[]byte("one "), []byte("two")}, &toy{}); err != nil {
			t.Error(err)
		}
	}
	if signed.header.Get("X-Signature") != "" || signed.url.RawQuery != "" {
		t.Errorf("the signature of a request stayed: %v %s", signed.header, signed.url)
	}
	broken := plain.Signed(func(*http.Request, string) error { return errors.New("no clock") })
	_, err = broken.Exchange(t.Context(), broken.header, Body{}, &toy{})
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Class != llm.ClassInvalidRequest || e.Retryable() || !strings.Contains(e.Message, "no clock") {
		t.Errorf("error %v, want one that is not retried and names the cause", err)
	}
}

func TestASigningKeyIsNeverShown(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"message":"The canonical request was x-amz-security-token:canary-session/== with AKIACANARY and canary-secret"}`)
	}))
	defer server.Close()
	e, err := NewEndpoint(llm.Account{BaseURL: server.URL, SigningKey: &llm.SigningKey{ID: "AKIACANARY", Secret: "canary-secret", Session: "canary-session/=="}},
		"", "/chat", testAuth, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Exchange(t.Context(), e.header, Body{}, &toy{})
	if text := err.Error(); strings.Contains(strings.ToLower(text), "canary") || !strings.Contains(text, "canonical request") {
		t.Errorf("error %q shows a credential or not the provider's text", text)
	}
}
