package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/llm/textcall"
)

// modelReport is what hozo doctor model finds.
type modelReport struct {
	Model     string `json:"model"`
	API       string `json:"api"`
	Simulated bool   `json:"simulated,omitempty"`
	// Calls is "structured", "text", "mixed" or "none".
	Calls    string `json:"calls"`
	Format   string `json:"format,omitempty"`
	Requests int    `json:"requests"`
	// Structured, Text and None add up to Requests; Repaired and Refused are some of Text and None.
	Structured int `json:"structured"`
	Text       int `json:"text"`
	None       int `json:"none"`
	Repaired   int `json:"repaired"`
	Refused    int `json:"refused"`
	// FirstMS and TotalMS are medians.
	FirstMS       int64        `json:"firstMs"`
	TotalMS       int64        `json:"totalMs"`
	UsageReported bool         `json:"usageReported"`
	Thinking      bool         `json:"thinking"`
	Replies       []probeReply `json:"replies"`
	// AsText is the reply to the request with the tool in the prompt, if it was tried.
	AsText *probeReply `json:"asText,omitempty"`
	Server *serverInfo `json:"server,omitempty"`
	// Compat is what to set for the model; Advice says why, and what else to do.
	Compat map[string]any `json:"compat"`
	Advice []string       `json:"advice"`
}

func (r *modelReport) add(reply probeReply) {
	r.Replies = append(r.Replies, reply)
	switch reply.Calls {
	case callsStructured:
		r.Structured++
	case callsText:
		r.Text++
	default:
		r.None++
	}
	if reply.Repaired {
		r.Repaired++
	}
	if reply.Refused != "" {
		r.Refused++
	}
	if reply.Calls == callsText && r.Format == "" {
		r.Format = reply.Format
	}
	r.Thinking = r.Thinking || reply.Thinking
}

// usable counts the requests that brought a call.
func (r *modelReport) usable() int { return r.Structured + r.Text }

// conclude fills in what follows from the replies.
func (r *modelReport) conclude() {
	switch {
	case r.Structured > 0 && r.Text > 0:
		r.Calls = "mixed"
	case r.Structured > 0:
		r.Calls = callsStructured
	case r.Text > 0:
		r.Calls = callsText
	default:
		r.Calls = callsNone
	}
	var first, total []int64
	r.UsageReported = true
	for _, reply := range r.Replies {
		first, total = append(first, reply.FirstMS), append(total, reply.TotalMS)
		r.UsageReported = r.UsageReported && reply.UsageReported
	}
	r.FirstMS, r.TotalMS = middle(first), middle(total)
}

// unanswered reports whether every request failed, the one with the tool in the prompt included.
func (r *modelReport) unanswered() bool {
	answered := func(reply probeReply) bool { return !reply.Failed }
	return !slices.ContainsFunc(r.Replies, answered) && (r.AsText == nil || !answered(*r.AsText))
}

// advise says what to set for the model, and what else to do.
func (r *modelReport) advise(s *probed, api string) {
	r.Compat, r.Advice = map[string]any{}, []string{}
	say := func(format string, args ...any) { r.Advice = append(r.Advice, fmt.Sprintf(format, args...)) }
	format, understood := textcall.Enabled(s.model, s.baseURL)
	switch {
	case r.usable() == 0 && r.AsText != nil && r.AsText.Calls == callsText:
		r.Compat["toolsAsText"] = true
		say("Set toolsAsText: the model calls the tool when it is declared in the prompt (as %s), and not when the API declares it.", r.AsText.Format)
	case r.unanswered():
		say("No request was answered, so nothing is known about the calls of this model. %s.", sentence(r.Replies[0].Problem))
	case r.usable() == 0:
		say("Use another model or server for agents with tools: this one called none. %s.", sentence(r.Replies[0].Problem))
	case r.Text > 0 && (!understood || format != "" && string(format) != r.Format):
		r.Compat["textToolCalls"] = llm.TextCallsAuto
		say("Set textToolCalls: the model writes calls into its text (as %s), and its entry does not let a job read them.", r.Format)
	case r.Text > 0:
		say("Nothing has to be set for calls: a job reads them from the text of this model.")
	default:
		say("Nothing has to be set for calls: they come through the API.")
	}
	if r.None > 0 && r.usable() > 0 {
		say("%d of %d requests brought no call: expect turns without one, and set limits.maxTurns.", r.None, r.Requests)
	}
	if !r.UsageReported && r.usable() > 0 {
		if api == job.APIOpenAIChat {
			r.Compat["streamUsage"] = true
		}
		say("The server did not count tokens: usage and cost are estimated where it does not.")
	}
	if r.Thinking && len(s.model.ThinkingLevels) == 0 {
		say("The model thinks although its entry has no thinkingLevels: name the levels it takes if it should be steered.")
	}
	if r.Server != nil && r.Server.Template == templatePlain {
		say("The chat template of the server knows no tools: start llama.cpp with --jinja and a template that does, or set toolsAsText.")
	}
}

// sentence returns a text with a capital letter.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".")
}

// print writes the report for people.
func (r *modelReport) print(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	name := r.Model
	if r.Simulated {
		name += " (a script, no language model)"
	}
	calls := r.Calls
	if r.Format != "" {
		calls += " (" + r.Format + ")"
	}
	fmt.Fprintf(w, "model\t%s\napi\t%s\ntool calls\t%s\n", visibleLine(name), r.API, visibleLine(calls))
	fmt.Fprintf(w, "replies\t%d structured, %d text, %d none; %d repaired, %d refused\n", r.Structured, r.Text, r.None, r.Repaired, r.Refused)
	fmt.Fprintf(w, "latency\t%d ms to the first sign, %d ms in all\n", r.FirstMS, r.TotalMS)
	fmt.Fprintf(w, "tokens counted\t%s\nthinks\t%s\n", yesOrNo(r.UsageReported), yesOrNo(r.Thinking))
	if r.AsText != nil {
		fmt.Fprintf(w, "tool in the prompt\t%s\n", visibleLine(strings.TrimSpace(r.AsText.Calls+" "+r.AsText.Format)))
	}
	if r.Server != nil {
		fmt.Fprintf(w, "chat template\t%s\n", r.Server.Template)
	}
	for i, reply := range r.Replies {
		if reply.Problem != "" {
			fmt.Fprintf(w, "request %d\t%s\n", i+1, visibleLine(reply.Problem))
		}
	}
	fmt.Fprintln(w, "\nWhat to do")
	for _, line := range r.Advice {
		fmt.Fprintf(w, "  %s\n", visibleLine(line))
	}
	if len(r.Compat) > 0 {
		compat, err := json.Marshal(r.Compat)
		if err != nil {
			return err
		}
		_, id, _ := strings.Cut(r.Model, "/")
		fmt.Fprintf(w, "\nIn the account of the provider: \"models\": {%q: {\"compat\": %s}}\n", visibleLine(id), compat)
	}
	return w.Flush()
}

// serverInfo is what a llama.cpp server says about itself.
type serverInfo struct {
	// Template is "tools" if the chat template knows tools, "plain" if it does not.
	Template string `json:"template"`
}

const (
	templateTools = "tools"
	templatePlain = "plain"
)

const (
	propsTimeout  = 3 * time.Second
	maxPropsBytes = 4 << 20
)

// readProps asks a llama.cpp server for its properties; nil if there is none at the address, or if it says nothing. No
// key is sent: whatever else listens there is not meant to get it.
func readProps(ctx context.Context, baseURL string) *serverInfo {
	address, err := url.Parse(baseURL)
	if err != nil {
		return nil
	}
	address.Path = strings.TrimSuffix(strings.TrimSuffix(address.Path, "/"), "/v1") + "/props"
	ctx, cancel := context.WithTimeout(ctx, propsTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}
	response, err := transport.RoundTrip(request) // redirects are not followed
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	var props struct {
		ChatTemplate        string `json:"chat_template"`
		ChatTemplateToolUse string `json:"chat_template_tool_use"`
	}
	body := io.LimitReader(response.Body, maxPropsBytes)
	if response.StatusCode != http.StatusOK || json.NewDecoder(body).Decode(&props) != nil || props.ChatTemplate == "" {
		return nil
	}
	if props.ChatTemplateToolUse != "" || strings.Contains(props.ChatTemplate, "tools") {
		return &serverInfo{Template: templateTools}
	}
	return &serverInfo{Template: templatePlain}
}
