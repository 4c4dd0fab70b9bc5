// Package openaichat speaks the Chat Completions API of OpenAI and of the many servers that speak dialects of it:
// llama.cpp, vLLM, Ollama, Groq, OpenRouter, DeepSeek, xAI, Together, Mistral, Z.ai, Qwen and gateways. How they differ
// is data: a dialect is chosen by the host of the base URL and each of its switches can be set in llm.Compat.
//
// A request is a byte-stable head (model, options, tools, system prompt), the messages, each encoded once when it is
// appended, and a short tail with what varies by call. A response is decoded event by event as a pure function of its
// bytes. The adapter never retries and decides nothing: retries, limits and the running of tools are the kernel's.
package openaichat

import (
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// API is the name of this API family in a job spec.
const API = "openai-chat"

const defaultBase = "https://api.openai.com/v1"

type provider struct{ endpoint *wire.Endpoint }

// New returns the provider for an account. It is an llm.Adapter.
func New(account llm.Account) (llm.Provider, error) {
	auth := wire.Auth{Header: "Authorization", Prefix: "Bearer "}
	endpoint, err := wire.NewEndpoint(account, defaultBase, "/chat/completions", auth, nil)
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
	d, err := dialectOf(p.endpoint.Host(), o.Model)
	if err != nil {
		return nil, err
	}
	c := &dialog{sender: wire.Sender{Endpoint: p.endpoint, Tags: o.Tags}, model: o.Model, dialect: d}
	c.ids = wire.CallIDs{Extra: "_-.:|"}
	if d.shortIDs {
		c.ids = wire.CallIDs{Exactly: 9}
	}
	c.buf, c.prefix = appendHead(nil, o, d)
	return c, nil
}
