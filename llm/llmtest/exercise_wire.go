package llmtest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/hozo-run/hozo/llm"
)

func exerciseTruncated(t *testing.T, s Setup) {
	events := s.Events(Reply{Text: []string{"one", "two"}, Calls: []ReplyCall{{"c1", "add", []string{`{"a":`, `1}`}}},
		Stop: Calls})
	for i, event := range events {
		_, _, err := s.ask(t, Stream(events[:i]...))
		if e := wantClass(t, err, llm.ClassTruncated); e != nil && !e.Retryable() {
			t.Errorf("cut before event %d: the error cannot be retried", i)
		}
		if s.Finish(event) {
			return
		}
	}
	t.Error("the reply has no finish mark")
}

func exerciseReset(t *testing.T, s Setup) {
	events := s.Events(Reply{Text: []string{"one", "two", "three"}, Stop: Ends})
	for i, event := range events {
		_, _, err := s.ask(t, Reset(events[:i]...))
		if e := wantClass(t, err, llm.ClassConnection); e != nil && !e.Retryable() {
			t.Errorf("reset before event %d: the error cannot be retried", i)
		}
		if s.Finish(event) {
			return
		}
	}
}

func exerciseStreamFault(t *testing.T, s Setup) {
	events := s.Events(Reply{Text: []string{"one", "two", "three"}, Stop: Ends})
	cut := append(append([]string(nil), events[:len(events)/2]...), s.Fault())
	_, _, err := s.ask(t, Stream(cut...))
	if e := wantClass(t, err, llm.ClassOverloaded); e != nil && !e.Retryable() {
		t.Error("the error cannot be retried")
	}
	broken := append(append([]string(nil), events[:len(events)/2]...), "data: {\"id\":\"secret-text\n\n")
	_, _, err = s.ask(t, Stream(append(broken, events[len(events)/2:]...)...))
	if e := wantClass(t, err, llm.ClassMalformed); e != nil && strings.Contains(e.Error(), "secret-text") {
		t.Errorf("the error quotes the stream: %v", e)
	}
}

func exercisePartial(t *testing.T, s Setup) {
	events := s.Events(Reply{Text: []string{"one ", "two"}, Stop: Ends, Input: 7, Output: 3})
	for i, event := range events {
		if s.Finish(event) {
			r, tape, err := s.ask(t, Reset(events[:i]...))
			if err == nil || r.Message.Text() != "one two" || tape.text != "one two" || r.Stop != "" {
				t.Errorf("text %q, deltas %q, stop %q, error %v; want both pieces, no stop and an error",
					r.Message.Text(), tape.text, r.Stop, err)
			}
			return
		}
	}
}

// pixel is a PNG of one transparent pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

func exerciseImages(t *testing.T, s Setup) {
	data, err := base64.StdEncoding.DecodeString(pixel)
	if err != nil {
		t.Fatal(err)
	}
	image := llm.Part{Type: llm.PartImage, Image: &llm.Image{MediaType: "image/png", Data: data}}
	bad := llm.Part{Type: llm.PartImage, Image: &llm.Image{MediaType: "image/png", Data: []byte("abc")}}
	for _, tt := range []struct {
		name        string
		takesImages bool
		part        llm.Part
		sent        bool
	}{
		{"a model that takes images", true, image, true},
		{"a model that takes none", false, image, false},
		{"an image that is none", true, bad, false},
	} {
		server := s.server(t, Stream(s.Events(Reply{Text: []string{"ok"}, Stop: Ends})...))
		o := s.opening()
		o.Model.Images = tt.takesImages
		c := s.converse(t, server, o)
		appendAll(t, c, llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.TextPart("Look:"), tt.part}},
			assistantCall("1.0", "call_1"), llm.Message{Role: llm.RoleTool, Parts: []llm.Part{{Type: llm.PartToolResult,
				ToolResult: &llm.ToolResult{CallID: "1.0", ProviderID: "call_1", Name: "add", Content: []llm.Part{tt.part}}}}})
		if _, err := c.Stream(t.Context(), llm.Call{}, nil); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		body := validJSON(t, server)
		payload := base64.StdEncoding.EncodeToString(tt.part.Image.Data)
		want := 0
		if tt.sent {
			want = 2
		}
		if n := bytes.Count(body, []byte(payload)); n != want {
			t.Errorf("%s: the image is in the request %d times, want %d", tt.name, n, want)
		}
		if notes := bytes.Count(body, []byte("An image belongs here")); notes != 2-want {
			t.Errorf("%s: %d notes about images, want %d", tt.name, notes, 2-want)
		}
	}
}

func assistantCall(id, providerID string) llm.Message {
	return llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Type: llm.PartToolCall,
		ToolCall: &llm.ToolCall{ID: id, ProviderID: providerID, Name: "add", Arguments: []byte(`{"a":1}`)}}}}
}

func validJSON(t *testing.T, server *Server) []byte {
	t.Helper()
	requests := server.Requests()
	body := requests[len(requests)-1].Body
	if !json.Valid(body) {
		t.Fatalf("the request is not JSON: %s", body)
	}
	return body
}

func exerciseUnicode(t *testing.T, s Setup) {
	text := "a\u2028b\u2029c \"quotes\" \\ / \x7f \u0000 \ttab\nline\r\n" + "日本語 🙂 e\u0301 \U0010FFFF"
	server := s.server(t, Stream(s.Events(Reply{Text: []string{text[:8], text[8:]}, Stop: Ends})...))
	c := s.open(t, server)
	appendAll(t, c, llm.UserText(text+"\xff\xed\xa0\x80"))
	var tape tape
	r, err := c.Stream(t.Context(), llm.Call{}, tape.sink)
	if err != nil || r.Message.Text() != text || tape.text != text {
		t.Errorf("text %q, deltas %q, error %v; want %q", r.Message.Text(), tape.text, err, text)
	}
	var all any
	if err := json.Unmarshal(validJSON(t, server), &all); err != nil {
		t.Fatal(err)
	}
	if !holds(all, func(v string) bool { return strings.HasPrefix(v, text+"\uFFFD") }) {
		t.Error("the request does not hold the text with the bad bytes replaced")
	}
}

// holds reports whether a string anywhere in a JSON value satisfies ok.
func holds(value any, ok func(string) bool) bool {
	switch v := value.(type) {
	case string:
		return ok(v)
	case []any:
		for _, item := range v {
			if holds(item, ok) {
				return true
			}
		}
	case map[string]any:
		for _, item := range v {
			if holds(item, ok) {
				return true
			}
		}
	}
	return false
}

func exerciseStatus(t *testing.T, s Setup) {
	for _, tt := range []struct {
		code      int
		body      string
		class     llm.Class
		retryable bool
	}{
		{400, `{"error":{"message":"bad field"}}`, llm.ClassInvalidRequest, false},
		{401, `{"error":{"message":"wrong key"}}`, llm.ClassAuth, false},
		{404, `{"error":{"message":"no such model"}}`, llm.ClassInvalidRequest, false},
		{413, `{"error":{"message":"request_too_large"}}`, llm.ClassContextOverflow, false},
		{429, `{"error":{"message":"slow down"}}`, llm.ClassRateLimit, true},
		{429, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`, llm.ClassQuota, false},
		{400, `{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}`, llm.ClassContextOverflow, false},
		{503, `try later`, llm.ClassOverloaded, true},
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, llm.ClassOverloaded, true},
	} {
		_, _, err := s.ask(t, Status(tt.code, "Retry-After", "3", tt.body))
		e := wantClass(t, err, tt.class)
		if e != nil && (e.Status != tt.code || e.Retryable() != tt.retryable || e.RetryAfter.Seconds() != 3) {
			t.Errorf("%d %s: status %d, retryable %v, wait %s", tt.code, tt.body, e.Status, e.Retryable(), e.RetryAfter)
		}
	}
}

func exercisePage(t *testing.T, s Setup) {
	_, _, err := s.ask(t, Page())
	if e := wantClass(t, err, llm.ClassMalformed); e != nil && !e.Retryable() {
		t.Error("the error cannot be retried")
	}
	_, _, err = s.ask(t, func(w http.ResponseWriter, r *http.Request) {
		begin(w)
		write(w, []string{"<html>\n<body>\n<p>Please sign in</p>\n\n</body></html>"})
	})
	wantClass(t, err, llm.ClassMalformed)
}

func exerciseCanary(t *testing.T, s Setup) {
	const key = `ca"nary/key+0123456789`
	forms := []string{key, base64.StdEncoding.EncodeToString([]byte(key)), url.QueryEscape(key), url.PathEscape(key),
		`ca\"nary/key+0123456789`, base64.StdEncoding.EncodeToString([]byte("user:" + key)), "gateway-secret-42"}
	account := llm.Account{APIKey: key, Headers: map[string]string{"X-Gateway": "Token gateway-secret-42"}}
	body, err := json.Marshal(map[string]any{"error": map[string]string{"message": strings.Join(forms, " and ")}})
	if err != nil {
		t.Fatal(err)
	}
	for _, answer := range []Answer{
		Status(401, "X-Request-Id", key, string(body)),
		Status(500, "", "", strings.Join(forms, " and ")),
		Stream(s.faultWith(string(body))),
	} {
		server := s.server(t, answer)
		account.BaseURL = server.URL + s.Base
		p, err := s.New(account)
		if err != nil {
			t.Fatal(err)
		}
		c, err := p.Converse(s.opening())
		if err != nil {
			t.Fatal(err)
		}
		appendAll(t, c, llm.UserText("Question?"))
		_, err = c.Stream(t.Context(), llm.Call{}, nil)
		e, ok := errors.AsType[*llm.Error](err)
		if !ok || !strings.Contains(e.Message, " and ") {
			t.Fatalf("error %v, want the provider's text", err)
		}
		shown := fmt.Sprintf("%v %+v %s %s", err, *e, e.Code, e.RequestID)
		for _, form := range append(forms, "0123456789", "bmFyeS9rZXkrMDEyMzQ1Njc4") {
			if strings.Contains(shown, form) {
				t.Errorf("the error shows the credential as %q: %s", form, shown)
			}
		}
	}
}

func exercisePrefix(t *testing.T, s Setup) {
	server := s.server(t)
	first := s.converse(t, server, s.opening())
	other := s.opening()
	other.JobSystem, other.Tags = "Another job.", llm.Tags{JobID: "j2"}
	if a, b := first.PrefixHash(), s.converse(t, server, other).PrefixHash(); a != b || len(a) != 64 {
		t.Errorf("prefixes %s and %s of openings that differ after the shared part", a, b)
	}
	warm := 0.5
	for name, change := range map[string]func(*llm.Opening){
		"model":       func(o *llm.Opening) { o.Model.ID = "other" },
		"system":      func(o *llm.Opening) { o.System = "Another shared part." },
		"tools":       func(o *llm.Opening) { o.Tools = nil },
		"thinking":    func(o *llm.Opening) { o.Thinking = llm.LevelLow },
		"temperature": func(o *llm.Opening) { o.Temperature = &warm },
	} {
		o := s.opening()
		change(&o)
		if s.converse(t, server, o).PrefixHash() == first.PrefixHash() {
			t.Errorf("an opening with another %s has the same prefix", name)
		}
	}
	before := first.PrefixHash()
	appendAll(t, first, llm.UserText("Question?"))
	if first.PrefixHash() != before {
		t.Error("the prefix changes when a message is appended")
	}
}

// longestTail is what an adapter may send after the messages, in bytes.
const longestTail = 128

// exerciseGrowth checks that each request begins with the bytes of the one before, up to the end of its messages.
func exerciseGrowth(t *testing.T, s Setup) {
	server := s.server(t)
	c := s.open(t, server)
	var before []byte
	for turn := range 5 {
		server.Queue(Stream(s.Events(Reply{Calls: []ReplyCall{{"same_id", "add", []string{`{}`}}}, Stop: Calls})...))
		if turn == 0 {
			appendAll(t, c, llm.UserText("Question?"))
		}
		r, err := c.Stream(t.Context(), llm.Call{MaxOutputTokens: int64(100 + turn)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		body := validJSON(t, server)
		if common := commonPrefix(before, body); turn > 0 && common < len(before)-longestTail {
			t.Errorf("turn %d shares %d of the %d bytes of the request before", turn, common, len(before))
		}
		before = body
		call := r.Message.ToolCalls()[0]
		call.ID = fmt.Sprintf("%d.0", turn)
		appendAll(t, c, r.Message, llm.Message{Role: llm.RoleTool, Parts: []llm.Part{{Type: llm.PartToolResult,
			ToolResult: &llm.ToolResult{CallID: call.ID, ProviderID: call.ProviderID, Name: "add"}}}})
	}
	if n := bytes.Count(before, []byte(`"same_id"`)); n != 2 {
		t.Errorf("an id that the provider used 4 times is on the wire %d times, want once with its result", n)
	}
}

func commonPrefix(a, b []byte) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

func exerciseRefusals(t *testing.T, s Setup) {
	server := s.server(t)
	c := s.open(t, server)
	_, err := c.Stream(t.Context(), llm.Call{}, nil)
	wantClass(t, err, llm.ClassInvalidRequest)
	appendAll(t, c, llm.UserText("Question?"), assistantCall("1.0", "call_1"))
	if _, err = c.Stream(t.Context(), llm.Call{}, nil); err == nil || !strings.Contains(err.Error(), "no result") {
		t.Errorf("error %v for a call without a result", err)
	}
	if err := c.Append(llm.UserText("More.")); err == nil {
		t.Error("a user message was taken while a call has no result")
	}
	stray := llm.Message{Role: llm.RoleTool, Parts: []llm.Part{{Type: llm.PartToolResult,
		ToolResult: &llm.ToolResult{CallID: "0.0", Name: "add"}}}}
	if err := c.Append(stray); err == nil {
		t.Error("a result for a call that was never made was taken")
	}
	if err := c.Append(llm.Message{Role: "system", Parts: []llm.Part{llm.TextPart("x")}}); err == nil {
		t.Error("an unknown role was taken")
	}
	if n := len(server.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func exerciseConcurrency(t *testing.T, s Setup) {
	const jobs = 32
	server := s.server(t)
	p, err := s.New(llm.Account{BaseURL: server.URL + s.Base})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 * jobs {
		server.Queue(func(w http.ResponseWriter, r *http.Request) {
			Stream(s.Events(Reply{Text: []string{"x", "y", "z"}, Stop: Ends})...)(w, r)
		})
	}
	var all sync.WaitGroup
	for range jobs {
		all.Go(func() {
			c, err := p.Converse(s.opening())
			if err != nil {
				t.Error(err)
				return
			}
			for range 2 {
				if err := c.Append(llm.UserText("Question?")); err != nil {
					t.Error(err)
				}
				if r, err := c.Stream(t.Context(), llm.Call{}, nil); err != nil || r.Message.Text() != "xyz" {
					t.Errorf("text %q, error %v", r.Message.Text(), err)
				}
			}
		})
	}
	all.Wait()
}
