// Package anthropic speaks the Messages API of Anthropic and of the servers that offer the same API.
//
// A request is a byte-stable head (model, thinking, tools, system prompt with a cache mark at the end of its shared
// part), the messages, each encoded once when it is appended, and a short tail with what varies by call. Consecutive
// messages that the API counts to one role are sent as one. A response is decoded event by event as a pure function of
// its bytes. The adapter never retries and decides nothing: retries, limits and the running of tools are the kernel's.
package anthropic

import (
	"strings"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/claude"
	"github.com/hozo-run/hozo/provider/wire"
)

// API is the name of this API family in a job spec.
const API = "anthropic-messages"

const (
	defaultBase = "https://api.anthropic.com"
	apiVersion  = "2023-06-01"
)

type provider struct{ endpoint *wire.Endpoint }

// New returns the provider for an account. It is an llm.Adapter. The base URL may end in /v1 or before it.
func New(account llm.Account) (llm.Provider, error) {
	account.BaseURL = strings.TrimSuffix(strings.TrimRight(account.BaseURL, "/"), "/v1")
	endpoint, err := wire.NewEndpoint(account, defaultBase, "/v1/messages", wire.Auth{Header: "X-Api-Key"},
		map[string]string{"Anthropic-Version": apiVersion})
	if err != nil {
		return nil, err
	}
	return &provider{endpoint}, nil
}

// Converse opens a dialog; see llm.Provider.
func (p *provider) Converse(o llm.Opening) (llm.Dialog, error) {
	if err := wire.CheckOpening(o); err != nil {
		return nil, err
	}
	t, err := claude.ThinkingOf(o)
	if err != nil {
		return nil, err
	}
	c := &dialog{sender: wire.Sender{Endpoint: p.endpoint, Tags: o.Tags}, model: o.Model, thinking: t}
	c.ids = wire.CallIDs{Extra: "_-"}
	c.cache = o.Model.Compat.PromptCache == nil || *o.Model.Compat.PromptCache
	c.appendHead(o)
	return c, nil
}
