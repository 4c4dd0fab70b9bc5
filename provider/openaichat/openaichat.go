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

// Path is the path of the method below the base URL.
const Path = "/chat/completions"

const defaultBase = "https://api.openai.com/v1"

// New returns the provider for an account. It is an llm.Adapter.
func New(account llm.Account) (llm.Provider, error) {
	auth := wire.Auth{Header: "Authorization", Prefix: "Bearer "}
	endpoint, err := wire.NewEndpoint(account, defaultBase, Path, auth, nil)
	if err != nil {
		return nil, err
	}
	return Variant{API: API, Host: endpoint.Host()}.Provider(endpoint), nil
}

// Variant is the API as another family offers it, for the adapter of that family.
type Variant struct {
	// API is the name of the family in a job spec, which its messages carry as their origin.
	API string
	// Host is the host whose dialect is spoken.
	Host string
}

// Provider returns the provider that speaks the variant at an endpoint.
func (v Variant) Provider(endpoint *wire.Endpoint) llm.Provider { return &provider{endpoint, v} }

type provider struct {
	endpoint *wire.Endpoint
	variant  Variant
}

// Converse opens a dialog; see llm.Provider.
func (p *provider) Converse(o llm.Opening) (llm.Dialog, error) {
	if err := wire.CheckOpening(o); err != nil {
		return nil, err
	}
	d, err := dialectOf(p.variant.Host, o.Model)
	if err != nil {
		return nil, err
	}
	c := &dialog{sender: wire.Sender{Endpoint: p.endpoint, Tags: o.Tags}, model: o.Model, dialect: d,
		origin: llm.Origin{API: p.variant.API, Model: o.Model.ID}}
	c.ids = wire.CallIDs{Extra: "_-.:|"}
	if d.shortIDs {
		c.ids = wire.CallIDs{Exactly: 9}
	}
	c.buf, c.prefix = appendHead(nil, o, d)
	return c, nil
}
