// Package openairesponses speaks the Responses API of OpenAI and of the servers that offer the same API.
//
// It uses the API without its memory: nothing is stored at the provider, every request carries the whole history, and
// the thinking of earlier turns goes along as the encrypted items that the model itself wrote. A request is a byte-stable
// head (model, options, tools, system prompt), the input items, each encoded once when its message is appended, and a
// short tail. A response is decoded event by event as a pure function of its bytes. The adapter never retries and decides
// nothing: retries, limits and the running of tools are the kernel's.
package openairesponses

import (
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// API is the name of this API family in a job spec.
const API = "openai-responses"

// Path is the path of the method below the base URL.
const Path = "/responses"

const (
	defaultBase = "https://api.openai.com/v1"
	ownHost     = "api.openai.com"
)

// New returns the provider for an account. It is an llm.Adapter.
func New(account llm.Account) (llm.Provider, error) {
	auth := wire.Auth{Header: "Authorization", Prefix: "Bearer "}
	endpoint, err := wire.NewEndpoint(account, defaultBase, Path, auth, nil)
	if err != nil {
		return nil, err
	}
	return Variant{API: API, Official: endpoint.Host() == ownHost}.Provider(endpoint), nil
}

// Variant is the API as another family offers it, for the adapter of that family.
type Variant struct {
	// API is the name of the family in a job spec, which its messages carry as their origin.
	API string
	// Official says that the server is one of OpenAI's own, which knows everything that the API has.
	Official bool
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
	d, err := dialectOf(p.variant.Official, o.Model)
	if err != nil {
		return nil, err
	}
	c := &dialog{sender: wire.Sender{Endpoint: p.endpoint, Tags: o.Tags}, model: o.Model, dialect: d,
		origin: llm.Origin{API: p.variant.API, Model: o.Model.ID}}
	c.ids = wire.CallIDs{Extra: "_-"}
	c.buf, c.prefix = appendHead(nil, o, d)
	return c, nil
}
