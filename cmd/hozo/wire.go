package main

import (
	"runtime/debug"
	"slices"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/anthropic"
	"github.com/hozo-run/hozo/provider/azure"
	"github.com/hozo-run/hozo/provider/bedrock"
	"github.com/hozo-run/hozo/provider/google"
	"github.com/hozo-run/hozo/provider/modeltable"
	"github.com/hozo-run/hozo/provider/offline"
	"github.com/hozo-run/hozo/provider/openaichat"
	"github.com/hozo-run/hozo/provider/openairesponses"
	"github.com/hozo-run/hozo/provider/scripted"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/filetool"
	"github.com/hozo-run/hozo/tool/gittool"
	"github.com/hozo-run/hozo/tool/scripttool"
	"github.com/hozo-run/hozo/tool/shelltool"
)

// newKernel wires the runtime of this program: its adapters, its model table and its tools, under the operator's settings.
func newKernel(o *operator) (*kernel.Runtime, error) {
	tools, err := newTools(o)
	if err != nil {
		return nil, err
	}
	config := kernel.Config{
		Version:  programVersion(),
		Adapters: adapters(),
		Models:   lookUpModel,
		Tools:    tools,
	}
	o.apply(&config)
	return kernel.New(config)
}

// newTools returns the tools in the order in which models are offered them.
func newTools(o *operator) (*tool.Registry, error) {
	return tool.NewRegistry(append(filetool.Tools(),
		shelltool.New(shelltool.Options{}), gittool.New(gittool.Options{Writes: o.gitWrites}), scripttool.New(scripttool.Options{}))...)
}

func adapters() map[string]llm.Adapter {
	return map[string]llm.Adapter{
		job.APIOpenAIChat:        openaichat.New,
		job.APIOpenAIResponses:   openairesponses.New,
		job.APIAzureOpenAI:       azure.New,
		job.APIAnthropicMessages: anthropic.New,
		job.APIGoogleGenerate:    google.New,
		job.APIBedrockConverse:   bedrock.New,
		job.APIScripted:          scripted.New,
		job.APIOffline:           offline.New,
	}
}

// lookUpModel finds a model for the kernel. The models of scripts are not in the table of real ones.
func lookUpModel(api, baseURL, id string) (llm.Model, bool) {
	switch api {
	case job.APIOffline:
		return offline.Model(id)
	case job.APIScripted:
		return llm.Model{ID: id, Name: "scripted model", Price: &llm.Price{}, Simulated: true}, true
	}
	return modeltable.Lookup(api, baseURL, id)
}

// speaks reports whether this program has an adapter for one of the APIs, and returns the first.
func speaks(apis []string) (string, bool) {
	known := adapters()
	at := slices.IndexFunc(apis, func(api string) bool { return known[api] != nil })
	if at < 0 {
		return "", false
	}
	return apis[at], true
}

// programVersion is what the linker was told, else what Go knows of the build.
func programVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
