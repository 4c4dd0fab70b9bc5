package azure

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/llm/llmtest"
	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/provider/wire"
)

func TestMain(m *testing.M) { os.Exit(llmtest.Main(m, wire.CloseIdle)) }

// by returns an adapter that serves every model by the method.
func by(method string) llm.Adapter {
	return func(a llm.Account) (llm.Provider, error) {
		p, err := New(a)
		return forced{p, method}, err
	}
}

type forced struct {
	llm.Provider
	method string
}

func (f forced) Converse(o llm.Opening) (llm.Dialog, error) {
	o.Model.Compat.Method = f.method
	return f.Provider.Converse(o)
}

func TestExercise(t *testing.T) {
	t.Parallel()
	t.Run("responses", func(t *testing.T) {
		t.Parallel()
		llmtest.Exercise(t, llmtest.Setup{
			New: by(MethodResponses), API: API, Base: "/openai/v1", Path: "/responses", Events: llmtest.ResponsesEvents, Thinks: true,
			ProviderID: func(id string) string { return id + "|fc_" + id },
			Finish:     func(event string) bool { return strings.Contains(event, `"response":{"status":`) },
			Fault: func() string {
				return "data: {\"type\":\"error\",\"code\":\"server_is_overloaded\",\"message\":\"Overloaded\"}\n\n"
			},
		})
	})
	t.Run("chat", func(t *testing.T) {
		t.Parallel()
		llmtest.Exercise(t, llmtest.Setup{
			New: by(MethodChat), API: API, Base: "/openai/v1", Path: "/chat/completions", Events: llmtest.ChatEvents, Thinks: true,
			Finish: func(event string) bool { return strings.Contains(event, `"finish_reason":"`) },
			Fault:  func() string { return "data: {\"error\":{\"message\":\"Overloaded\",\"code\":529}}\n\n" },
		})
	})
}

func TestAddressesOfAResource(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"https://name.openai.azure.com":                                       "https://name.openai.azure.com/openai/v1",
		"https://name.openai.azure.com/":                                      "https://name.openai.azure.com/openai/v1",
		"https://name.openai.azure.com/openai":                                "https://name.openai.azure.com/openai/v1",
		"https://name.openai.azure.com/openai/":                               "https://name.openai.azure.com/openai/v1",
		"https://name.openai.azure.com/openai/v1":                             "https://name.openai.azure.com/openai/v1",
		"https://name.openai.azure.com/openai/v1/":                            "https://name.openai.azure.com/openai/v1",
		"https://name.cognitiveservices.azure.com":                            "https://name.cognitiveservices.azure.com/openai/v1",
		"https://name.services.ai.azure.com/api/projects/one":                 "https://name.services.ai.azure.com/api/projects/one/openai/v1",
		"https://gateway.example/azure/openai":                                "https://gateway.example/azure/openai/v1",
		"http://127.0.0.1:8080":                                               "http://127.0.0.1:8080/openai/v1",
		"":                                                                    "",
		"https://name.openai.azure.com/openai/deployments/d":                  "",
		"https://name.openai.azure.com/openai/deployments/d/chat/completions": "",
		"https://name.openai.azure.com/openai/v1/responses":                   "",
		"https://name.openai.azure.com/openai/v1/chat/completions/":           "",
		"https://name.openai.azure.com?api-version=v1":                        "",
		"name.openai.azure.com":                                               "",
	} {
		p, err := New(llm.Account{BaseURL: in, APIKey: "key"})
		if want == "" {
			if found := problem.Of(err); len(found) != 1 || found[0].Pointer != "/baseUrl" {
				t.Errorf("%q: error %v, want one about /baseUrl", in, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		c, err := p.Converse(llm.Opening{Model: llm.Model{ID: "gpt-5"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Append(llm.UserText("q")); err != nil {
			t.Fatal(err)
		}
		request, err := c.Request(llm.Call{})
		if err != nil || !strings.HasSuffix(want+"/responses", request.Path) || strings.Count(request.Path, "/openai/v1/") != 1 {
			t.Errorf("%q: requests go to %q, error %v; want below %s", in, request.Path, err, want)
		}
	}
}

// ask opens a dialog with a model at a server and asks it a question.
func ask(t *testing.T, a llm.Account, m llm.Model, answer llmtest.Answer) (llm.Response, llmtest.Request, error) {
	t.Helper()
	server := llmtest.NewServer(t, answer)
	a.BaseURL = server.URL
	p, err := New(a)
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Converse(llm.Opening{Model: m, System: "S"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Append(llm.UserText("q")); err != nil {
		t.Fatal(err)
	}
	r, err := c.Stream(t.Context(), llm.Call{}, nil)
	return r, server.Requests()[0], err
}

func TestHowAModelIsServed(t *testing.T) {
	t.Parallel()
	reply := llmtest.Reply{Text: []string{"ok"}, Stop: llmtest.Ends}
	for _, tt := range []struct{ id, method, deployment, path, name string }{
		{id: "gpt-5-mini", path: "/openai/v1/responses", name: "gpt-5-mini"},
		{id: "o4-mini", path: "/openai/v1/responses", name: "o4-mini"},
		{id: "gpt-4.1", path: "/openai/v1/responses", name: "gpt-4.1"},
		{id: "gpt-35-turbo", path: "/openai/v1/chat/completions", name: "gpt-35-turbo"},
		{id: "gpt-50", path: "/openai/v1/chat/completions", name: "gpt-50"},
		{id: "DeepSeek-V3.1", path: "/openai/v1/chat/completions", name: "DeepSeek-V3.1"},
		{id: "our-model", path: "/openai/v1/chat/completions", name: "our-model"},
		{id: "our-model", method: MethodResponses, path: "/openai/v1/responses", name: "our-model"},
		{id: "gpt-5", method: MethodChat, path: "/openai/v1/chat/completions", name: "gpt-5"},
		{id: "gpt-5", deployment: "team-five", path: "/openai/v1/responses", name: "team-five"},
	} {
		t.Run(tt.id+" "+tt.method, func(t *testing.T) {
			t.Parallel()
			events := llmtest.ChatEvents(reply)
			if strings.HasSuffix(tt.path, "/responses") {
				events = llmtest.ResponsesEvents(reply)
			}
			r, sent, err := ask(t, llm.Account{APIKey: "key"}, llm.Model{ID: tt.id, Compat: llm.Compat{Method: tt.method, Deployment: tt.deployment}},
				llmtest.Stream(events...))
			if err != nil || r.Message.Text() != "ok" || r.Message.Origin != (llm.Origin{API: API, Model: tt.id}) {
				t.Errorf("text %q of %v, error %v", r.Message.Text(), r.Message.Origin, err)
			}
			if sent.Path != tt.path || !strings.Contains(string(sent.Body), `"model":"`+tt.name+`"`) {
				t.Errorf("sent to %s: %s; want model %s at %s", sent.Path, sent.Body, tt.name, tt.path)
			}
			if sent.Header.Get("Api-Key") != "key" || sent.Header.Get("Authorization") != "" {
				t.Errorf("headers %v", sent.Header)
			}
		})
	}
	p, err := New(llm.Account{BaseURL: "https://name.openai.azure.com"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Converse(llm.Opening{Model: llm.Model{ID: "m", Compat: llm.Compat{Method: "fax"}}}); err == nil || !strings.Contains(err.Error(), "fax") {
		t.Errorf("error %v for an unknown method", err)
	}
}

func TestTheVersionOfTheAPIIsAskedFor(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"": "", "preview": "api-version=preview"} {
		query := ""
		answer := llmtest.Stream(llmtest.ResponsesEvents(llmtest.Reply{Text: []string{"ok"}, Stop: llmtest.Ends})...)
		_, sent, err := ask(t, llm.Account{APIVersion: version}, llm.Model{ID: "gpt-5"}, func(w http.ResponseWriter, r *http.Request) {
			query = r.URL.RawQuery
			answer(w, r)
		})
		if err != nil || query != want || sent.Header.Values("Api-Key") != nil {
			t.Errorf("version %q: query %q, error %v; want %q", version, query, err, want)
		}
	}
}

// TestRecordings plays every recorded exchange with Azure over HTTP, by the method that it was recorded with.
func TestRecordings(t *testing.T) {
	t.Parallel()
	n := map[string]int{}
	for method, path := range map[string]string{MethodChat: "/chat/completions", MethodResponses: "/responses"} {
		for _, x := range llmtest.Recordings(t, path) {
			if !strings.HasSuffix(x.Host, ".azure.com") {
				continue
			}
			n[method]++
			r, _, err := ask(t, llm.Account{APIKey: "key"}, llm.Model{ID: "gpt-5-mini", Compat: llm.Compat{Method: method}}, llmtest.Replay(x)[0])
			if err != nil || r.Message.Text() == "" && len(r.Message.ToolCalls()) == 0 || !r.UsageReported {
				t.Errorf("%s by %s: parts %+v, error %v", x.Name, method, r.Message.Parts, err)
			}
		}
	}
	if n[MethodChat] == 0 || n[MethodResponses] == 0 {
		t.Errorf("played %v; want exchanges of both methods", n)
	}
	t.Logf("played %v", n)
}
