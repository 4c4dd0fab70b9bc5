package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/llm/textcall"
)

// modelProbe are the flags of hozo doctor model.
type modelProbe struct {
	account  accountFlags
	requests int
	timeout  time.Duration
	json     bool
}

// exitNoCall is the exit code if a request brought no call.
const exitNoCall = 1

// maxProbes bounds what one command may spend.
const maxProbes = 20

func (p *program) doctorModelCommand() *cobra.Command {
	f := &modelProbe{}
	command := &cobra.Command{
		Use:   "model",
		Short: "Ask a model for a tool call and show how it answers",
		Long: `Send one small request with one tool to a model, and show how it calls the tool: structured (through the API), text (in
one of the forms that Hozo understands) or none; how long that took, whether the server counts tokens, whether the model
thinks, and what to set for it in the compat field of its entry. With --requests it is asked several times and the shares
are shown. Each request may cost money.

If the model does not call, or the server refuses tools, it is asked once more with the tool declared in the prompt. Of a
llama.cpp server the address /props is read too, which says whether its chat template knows tools.

The exit code is 0 if every request brought a call that can be used, and 1 if not.`,
		Example: `  hozo doctor model --model ollama/qwen2.5-coder:7b
  hozo doctor model --model local/hermes-3 --base-url http://127.0.0.1:8080/v1 --requests 10 --json`,
		Args: noArguments,
		RunE: p.runs(func(command *cobra.Command, _ []string) error {
			return p.doctorModel(command.Context(), f)
		}),
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.account.model, "model", "", "the model as `PROVIDER/ID`, for example ollama/qwen2.5")
	flags.StringVar(&f.account.configFile, "provider-config", "", "JSON `FILE` of accounts by provider, as in a job document")
	flags.StringVar(&f.account.api, "api", "", "`API` of the provider, such as "+job.APIOpenAIChat+"; the provider's own if absent")
	flags.StringVar(&f.account.baseURL, "base-url", "", "address of the API, as `URL` without the method's path")
	flags.StringVar(&f.account.keyEnv, "api-key-env", "", "environment variable `NAME` that holds the key")
	flags.StringVar(&f.account.keyFile, "api-key-file", "", "`FILE` that holds the key")
	flags.StringVar(&f.account.scriptFile, "script", "", "play the script in `FILE` (YAML or JSON) instead of a model")
	flags.IntVar(&f.requests, "requests", 1, "ask `N` times, at most 20")
	flags.DurationVar(&f.timeout, "timeout", time.Minute, "give a request up after this time")
	flags.BoolVar(&f.json, "json", false, "write one JSON document")
	return command
}

// doctorModel asks the model and shows what it learned.
func (p *program) doctorModel(ctx context.Context, f *modelProbe) error {
	if f.requests < 1 || f.requests > maxProbes {
		return usageError("--requests %d: ask 1 to %d times", f.requests, maxProbes)
	}
	ref, config, err := f.account.resolve(p.getenv)
	if err != nil {
		return err
	}
	adapter := adapters()[config.API]
	if adapter == nil {
		return usageError("--api %q is not supported by this version", config.API)
	}
	provider, err := adapter(config.Account())
	if err != nil {
		return err
	}
	subject := &probed{provider: provider, baseURL: config.BaseURL, model: probedModel(provider, ref.ID, config), timeout: f.timeout}
	report := subject.examine(ctx, f.requests)
	report.Model, report.API, report.Simulated = ref.Provider+"/"+ref.ID, config.API, subject.model.Simulated
	if config.API == job.APIOpenAIChat && !textcall.Hosted(config.BaseURL) {
		report.Server = readProps(ctx, config.BaseURL)
	}
	report.advise(subject, config.API)
	if f.json {
		err = p.writeJSON(report)
	} else {
		err = report.print(p.stdout)
	}
	if err == nil && report.usable() < report.Requests {
		return exitWith(exitNoCall)
	}
	return err
}

// probedModel returns the entry of the model as a job would have it.
func probedModel(provider llm.Provider, id string, config job.ProviderConfig) llm.Model {
	model, listed := llm.Model{}, false
	if source, ok := provider.(llm.ModelSource); ok {
		model, listed = source.Model(id)
	}
	if !listed {
		model, _ = lookUpModel(config.API, config.BaseURL, id)
	}
	model.ID = id
	if override, ok := config.Models[id]; ok {
		override.Apply(&model)
	}
	return model
}

// probed is the model that is examined.
type probed struct {
	provider llm.Provider
	baseURL  string
	model    llm.Model
	timeout  time.Duration
}

// examine asks the model n times. If no reply holds a call, it asks once with the tool in the prompt.
func (s *probed) examine(ctx context.Context, n int) *modelReport {
	report := &modelReport{Requests: n}
	for range n {
		report.add(s.ask(ctx, false))
	}
	if report.usable() == 0 && !s.asText() && ctx.Err() == nil {
		reply := s.ask(ctx, true)
		report.AsText = &reply
	}
	report.conclude()
	return report
}

func (s *probed) asText() bool {
	return s.model.Compat.ToolsAsText != nil && *s.model.Compat.ToolsAsText
}

// probeReply is what came back of one request.
type probeReply struct {
	// Calls is "structured", "text" or "none".
	Calls    string `json:"calls"`
	Format   string `json:"format,omitempty"`
	Repaired bool   `json:"repaired,omitempty"`
	Refused  string `json:"refused,omitempty"`
	// Problem says why a reply without a call has none, or what is wrong with the call.
	Problem string `json:"problem,omitempty"`
	// Failed says that there was no reply: the problem is one of the request.
	Failed bool `json:"failed,omitempty"`
	// FirstMS and TotalMS are the times to the first delta and to the end, in milliseconds.
	FirstMS       int64 `json:"firstMs"`
	TotalMS       int64 `json:"totalMs"`
	UsageReported bool  `json:"usageReported"`
	Thinking      bool  `json:"thinking"`
}

// The kinds of replies.
const (
	callsStructured = "structured"
	callsText       = "text"
	callsNone       = "none"
)

const (
	probeTool   = "report_number"
	probePrompt = "Call the tool report_number with the number 7. Do not answer in words."
	// probeTokens leaves room for a model that thinks first.
	probeTokens = 2048
)

// ask sends one request. Calls in the text are looked for whatever the settings of the model say: that is the question.
func (s *probed) ask(ctx context.Context, asText bool) probeReply {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	model := s.model
	if model.Compat.TextToolCalls == "" || model.Compat.TextToolCalls == llm.TextCallsOff {
		model.Compat.TextToolCalls = llm.TextCallsAuto
	}
	if asText {
		model.Compat.ToolsAsText = &asText
	}
	dialog, err := textcall.Wrap(s.provider, s.baseURL).Converse(llm.Opening{Model: model, System: "You follow instructions exactly.",
		Thinking: llm.LevelOff, Tags: llm.Tags{JobID: "doctor", AgentID: "doctor"}, Tools: []llm.ToolSpec{{
			Name: probeTool, Description: "Reports a number.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"number":{"type":"integer"}},"required":["number"]}`)}}})
	if err == nil {
		err = dialog.Append(llm.UserText(probePrompt))
	}
	if err != nil {
		return probeReply{Calls: callsNone, Problem: err.Error(), Failed: true}
	}
	limit := int64(probeTokens)
	if model.MaxOutputTokens > 0 {
		limit = min(limit, model.MaxOutputTokens)
	}
	start, first := time.Now(), time.Duration(0)
	thinking := false
	response, err := dialog.Stream(ctx, llm.Call{MaxOutputTokens: limit, Purpose: llm.PurposeCheck}, func(d llm.Delta) error {
		if first == 0 {
			first = time.Since(start)
		}
		thinking = thinking || d.Kind == llm.DeltaThinking
		return nil
	})
	reply := judgeProbe(response, err)
	reply.FirstMS, reply.TotalMS = first.Milliseconds(), time.Since(start).Milliseconds()
	reply.UsageReported, reply.Thinking = response.UsageReported, thinking
	return reply
}

// judgeProbe says what a response is.
func judgeProbe(response llm.Response, err error) probeReply {
	reply := probeReply{Calls: callsNone}
	if text := response.TextCall; text != nil {
		reply.Format, reply.Repaired, reply.Refused = text.Format, text.Repaired, text.Refused
	}
	calls := response.Message.ToolCalls()
	switch {
	case err != nil:
		reply.Problem, reply.Failed = err.Error(), true
	case response.Stop == llm.StopLength:
		reply.Problem = "the reply was cut at its limit"
	case len(calls) == 0 && reply.Refused == "":
		reply.Problem = "the reply holds no call"
	case len(calls) == 0:
		reply.Problem = "what looks like a call was refused: " + reply.Refused
	case calls[0].Name != probeTool:
		reply.Problem = fmt.Sprintf("the model called %q, which was not offered", calls[0].Name)
	case calls[0].ArgumentsError != "":
		reply.Problem = calls[0].ArgumentsError
	case calls[0].TextFormat != "":
		reply.Calls = callsText
	default:
		reply.Calls = callsStructured
	}
	return reply
}

// middle returns the median of times.
func middle(times []int64) int64 {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[len(times)/2]
}
