// Package google speaks generateContent, the API of Gemini, and that of the servers that offer it too.
//
// A request is a byte-stable head (tools, system prompt), the messages, each encoded once when it is appended, and a tail
// with the settings of the generation, which the API keeps in one object. Gemini caches prompts by itself, so equal
// beginnings are all that it takes. Consecutive messages that the API counts to one role are sent as one, except that the
// results of calls stand alone. A response is decoded event by event as a pure function of its bytes. The adapter never
// retries and decides nothing: retries, limits and the running of tools are the kernel's.
//
// Gemini proves single parts of an answer with thought signatures. They are kept on the parts they came with and go back
// to the model that wrote them, unchanged.
package google

import (
	"fmt"
	"strings"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// API is the name of this API family in a job spec.
const API = "google-generate"

const (
	defaultBase    = "https://generativelanguage.googleapis.com"
	defaultVersion = "/v1beta"
)

type provider struct {
	endpoint *wire.Endpoint
	// version is the segment of the path that the base URL lacks.
	version string
}

// New returns the provider for an account. It is an llm.Adapter. The base URL may end in the version of the API or before
// it; without one the version is v1beta. The key goes into a header and never into the address.
func New(account llm.Account) (llm.Provider, error) {
	version := defaultVersion
	if versioned(account.BaseURL) {
		version = ""
	}
	endpoint, err := wire.NewEndpoint(account, defaultBase, "", wire.Auth{Header: "X-Goog-Api-Key"}, nil)
	if err != nil {
		return nil, err
	}
	return &provider{endpoint, version}, nil
}

// versioned reports whether a base URL ends in a version of the API.
func versioned(base string) bool {
	base = strings.TrimRight(base, "/")
	for _, version := range []string{"/v1beta", "/v1", "/v1alpha", "/v1beta1"} {
		if strings.HasSuffix(base, version) {
			return true
		}
	}
	return false
}

// Converse opens a dialog; see llm.Provider.
func (p *provider) Converse(o llm.Opening) (llm.Dialog, error) {
	if err := wire.CheckOpening(o); err != nil {
		return nil, err
	}
	for _, t := range o.Tools {
		if first := t.Name[0]; first == '-' || ('0' <= first && first <= '9') {
			return nil, fmt.Errorf("tool %q: on this API a name begins with a letter or an underscore", t.Name)
		}
	}
	t, err := thinkingOf(o)
	if err != nil {
		return nil, err
	}
	endpoint := p.endpoint.At(p.version+modelPath(o.Model.ID)+":streamGenerateContent", "alt=sse")
	c := &dialog{
		sender: wire.Sender{Endpoint: endpoint, Tags: o.Tags}, model: o.Model, traits: traitsOf(o.Model.ID),
		settings: settings{thinking: t, temperature: o.Temperature}, ids: wire.CallIDs{Extra: "_-"},
	}
	c.appendHead(o)
	return c, nil
}

// modelPath returns the part of the path that names a model. An id may be the full name of a resource, such as that of a
// tuned model.
func modelPath(id string) string {
	for _, collection := range []string{"models/", "tunedModels/"} {
		if name, ok := strings.CutPrefix(id, collection); ok {
			return "/" + collection + wire.PathPart(name)
		}
	}
	return "/models/" + wire.PathPart(id)
}
