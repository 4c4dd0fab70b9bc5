package account

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
)

const (
	testSystem = "You answer in one word."
	testPrompt = "Say: ready"
	// testTokens leaves room for a model that thinks first.
	testTokens = 1024
)

// The classes of failure that a test call adds to those of llm.
const (
	// FailConfig is an account that no request can be made with.
	FailConfig = "config"
	// FailTimeout is a server that did not answer in time.
	FailTimeout = "timeout"
	// FailOther is none of the known classes.
	FailOther = "other"
)

// TestResult is what came of a test call. It holds no credential and nothing of the answer.
type TestResult struct {
	OK    bool   `json:"ok"`
	Model string `json:"model"`
	// Known says that the model is in the model table or in the account's overrides.
	Known bool `json:"known"`
	// Simulated says that the answer came from no language model.
	Simulated bool `json:"simulated,omitempty"`
	// Class is an llm.Class or one of the three above, "" for a success.
	Class string `json:"class,omitempty"`
	// Status is the HTTP status of a refusal, 0 if there was none.
	Status  int    `json:"status,omitempty"`
	Message string `json:"message,omitempty"`
	// ServedModel is the model that answered, if the provider says so.
	ServedModel string `json:"servedModel,omitempty"`
	// DurationMS is how long it took, in milliseconds.
	DurationMS int64 `json:"durationMs"`
}

// TestProvider sends one small request to a model of an account, which may cost money, and says how it went. The error is
// store.ErrNotFound, or that the credentials cannot be opened; whatever the provider does is a result.
func (s *Service) TestProvider(ctx context.Context, tenant, id, model string) (TestResult, error) {
	p, err := providerByID(ctx, s.db, tenant, id)
	if err != nil {
		return TestResult{}, err
	}
	config, err := s.open(tenant, p)
	if err != nil {
		return TestResult{}, err
	}
	entry, known := s.entry(p.Config, model)
	result := TestResult{Model: model, Known: known, Simulated: entry.Simulated}
	start := s.now()
	ctx, cancel := context.WithTimeout(ctx, s.config.TestTimeout)
	defer cancel()
	response, err := s.ask(ctx, config, entry)
	result.DurationMS = s.now().Sub(start).Milliseconds()
	result.ServedModel = response.ServedModel
	s.judge(ctx, &result, err)
	held := take(&config)
	result.Message, result.ServedModel = held.scrub(result.Message), held.scrub(result.ServedModel)
	return result, nil
}

// errConfig marks faults from before the request.
type errConfig struct{ err error }

func (e errConfig) Error() string { return e.err.Error() }

func (s *Service) ask(ctx context.Context, config job.ProviderConfig, model llm.Model) (llm.Response, error) {
	if model.ID == "" {
		return llm.Response{}, errConfig{errors.New("name the model to call")}
	}
	adapter := s.config.Adapters[config.API]
	if adapter == nil {
		return llm.Response{}, errConfig{fmt.Errorf("this program has no adapter for the API %q", config.API)}
	}
	provider, err := adapter(config.Account())
	if err != nil {
		return llm.Response{}, errConfig{err}
	}
	dialog, err := provider.Converse(llm.Opening{Model: model, System: testSystem, Thinking: llm.Nearest(llm.LevelOff, model.ThinkingLevels),
		Tags: llm.Tags{JobID: "provider-test", AgentID: "provider-test"}})
	if err == nil {
		err = dialog.Append(llm.UserText(testPrompt))
	}
	if err != nil {
		return llm.Response{}, errConfig{err}
	}
	limit := int64(testTokens)
	if model.MaxOutputTokens > 0 {
		limit = min(limit, model.MaxOutputTokens)
	}
	return dialog.Stream(ctx, llm.Call{MaxOutputTokens: limit, Purpose: llm.PurposeCheck}, func(llm.Delta) error { return nil })
}

// judge takes an answer that was cut at its limit for a success: the account works.
func (s *Service) judge(ctx context.Context, r *TestResult, err error) {
	if err == nil {
		r.OK = true
		return
	}
	r.Message = err.Error()
	if e, ok := errors.AsType[*llm.Error](err); ok {
		r.Class, r.Status = string(e.Class), e.Status
		return
	}
	_, config := errors.AsType[errConfig](err)
	switch {
	case config:
		r.Class = FailConfig
	case ctx.Err() != nil:
		r.Class, r.Message = FailTimeout, fmt.Sprintf("there was no answer within %s", s.config.TestTimeout.Round(time.Millisecond))
	default:
		r.Class = FailOther
	}
}
