// Package azure speaks to models of OpenAI and others that are deployed at Azure OpenAI and Azure AI Foundry. The service
// offers the Chat Completions and the Responses API at addresses and with keys of its own; this package settles where and
// by which of the two a model is served, and the adapters of the two APIs do the rest.
//
// Only the addresses without a version in them (/openai/v1) are used. A model is called by the name of its deployment,
// which is its id unless llm.Compat.Deployment says otherwise. OpenAI's own models are served by the Responses API and
// all others by Chat Completions, unless llm.Compat.Method says otherwise.
package azure

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/provider/openaichat"
	"github.com/hozo-run/hozo/provider/openairesponses"
	"github.com/hozo-run/hozo/provider/wire"
)

// API is the name of this API family in a job spec.
const API = "azure-openai"

// The methods of llm.Compat.Method.
const (
	MethodChat      = "chat"
	MethodResponses = "responses"
)

// dialectHost is the host whose dialect of Chat Completions every resource speaks, whatever its own name.
const dialectHost = "openai.azure.com"

type provider struct{ chat, responses llm.Provider }

// New returns the provider for an account. It is an llm.Adapter. The base URL is the address of a resource or of a
// project, with or without /openai or /openai/v1. A key is sent as api-key; a token of Microsoft Entra ID goes into the
// account's headers as Authorization.
func New(account llm.Account) (llm.Provider, error) {
	base, wrong := normalBase(account.BaseURL)
	if wrong != "" {
		var list problem.List
		list.AddHint("provider-invalid", "/baseUrl", `for example "https://NAME.openai.azure.com"`, "%s", wrong)
		return nil, list.Err("configure the account")
	}
	account.BaseURL = base
	endpoint, err := wire.NewEndpoint(account, "", "", wire.Auth{Header: "Api-Key"}, nil)
	if err != nil {
		return nil, err
	}
	query := ""
	if account.APIVersion != "" {
		query = url.Values{"api-version": {account.APIVersion}}.Encode()
	}
	return &provider{
		chat: openaichat.Variant{API: API, Host: dialectHost}.Provider(endpoint.At(openaichat.Path, query)),
		responses: openairesponses.Variant{API: API, Official: true}.Provider(
			endpoint.At(openairesponses.Path, query)),
	}, nil
}

// Converse opens a dialog by the method that serves the model; see llm.Provider.
func (p *provider) Converse(o llm.Opening) (llm.Dialog, error) {
	switch o.Model.Compat.Method {
	case MethodChat:
		return p.chat.Converse(o)
	case MethodResponses:
		return p.responses.Converse(o)
	case "":
		if ownModel(o.Model.ID) {
			return p.responses.Converse(o)
		}
		return p.chat.Converse(o)
	}
	return nil, fmt.Errorf("compat method: %q is neither %s nor %s", o.Model.Compat.Method, MethodChat, MethodResponses)
}

// normalBase returns the base URL with /openai/v1 at its end, or what is wrong with it. What it does not understand it
// leaves to the checks that every base URL goes through.
func normalBase(base string) (normal, wrong string) {
	if base == "" {
		return "", "must name the resource: Azure has no address that is the same for all"
	}
	trimmed := strings.TrimRight(base, "/")
	address, err := url.Parse(trimmed)
	if err != nil || address.Host == "" || address.RawQuery != "" || address.Fragment != "" {
		return base, ""
	}
	path := strings.ToLower(address.Path)
	switch {
	case strings.Contains(path+"/", "/deployments/"):
		return "", "must end before /openai/deployments: the name of the deployment is the model's id, or its compat.deployment"
	case strings.HasSuffix(path, openaichat.Path) || strings.HasSuffix(path, openairesponses.Path):
		return "", "must end before the method, which is added to it"
	case strings.HasSuffix(path, "/openai/v1"):
		return trimmed, ""
	case strings.HasSuffix(path, "/openai"):
		return trimmed + "/v1", ""
	}
	return trimmed + "/openai/v1", ""
}

// ownModel reports whether the id is that of a model that OpenAI made and still serves by its newer API.
func ownModel(id string) bool {
	id = strings.ToLower(id)
	for _, family := range []string{"gpt-4o", "gpt-4.1", "gpt-5", "gpt-6", "o1", "o3", "o4", "codex", "computer-use"} {
		if rest, ok := strings.CutPrefix(id, family); ok && (rest == "" || strings.ContainsAny(rest[:1], "-.")) {
			return true
		}
	}
	return false
}
