package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/provider/modeltable"
	"github.com/hozo-run/hozo/provider/offline"
	"github.com/hozo-run/hozo/provider/scripted"
)

// accountFlags say how to reach a model. No flag takes a key: command lines are seen by everyone on the machine.
type accountFlags struct {
	model      string
	configFile string
	api        string
	baseURL    string
	keyEnv     string
	keyFile    string
	scriptFile string
}

// The most that a key, a script and a file of accounts may hold.
const (
	maxKeyBytes    = 64 << 10
	maxConfigBytes = 8 << 20
)

// localServers are the usual addresses of programs that serve models on this machine and ask for no key.
func localServers() map[string]string {
	return map[string]string{
		"llamacpp": "http://127.0.0.1:8080/v1",
		"lmstudio": "http://127.0.0.1:1234/v1",
		"ollama":   "http://127.0.0.1:11434/v1",
		"vllm":     "http://127.0.0.1:8000/v1",
	}
}

// scriptModel is the model of --script where --model names none.
const scriptModel = "scripted/script"

const howToChoose = `choose a model with --model PROVIDER/ID:
  offline/surveyor          built in, no key: a script that surveys a directory, no language model
  openai/…  anthropic/…     the key comes from OPENAI_API_KEY, ANTHROPIC_API_KEY; "hozo models" lists the ids
  gemini/…                  the key comes from GEMINI_API_KEY
  ollama/…  llamacpp/…      a server on this machine
or give --script FILE for a scripted model, or --base-url for any server with an OpenAI-compatible API`

// resolve returns the chosen model and the account that serves it.
func (f *accountFlags) resolve(getenv func(string) string) (job.ModelRef, job.ProviderConfig, error) {
	var config job.ProviderConfig
	name := f.model
	if name == "" && f.scriptFile != "" {
		name = scriptModel
	}
	if name == "" {
		return job.ModelRef{}, config, usageError("no model; %s", howToChoose)
	}
	provider, id, ok := strings.Cut(name, "/")
	if !ok || provider == "" || id == "" {
		return job.ModelRef{}, config, usageError("--model %q is not of the form PROVIDER/ID; %s", name, howToChoose)
	}
	ref := job.ModelRef{Provider: provider, ID: id}
	config, named, err := f.configured(provider)
	if err != nil {
		return ref, config, err
	}
	if f.scriptFile != "" {
		if f.api != "" || f.baseURL != "" || f.keyEnv != "" || f.keyFile != "" {
			return ref, config, usageError("--script plays a model itself; leave --api, --base-url and the key out")
		}
		config.API = job.APIScripted
		config.Script, err = readScript(f.scriptFile)
		return ref, config, err
	}
	if !named {
		if config, err = f.known(provider, id); err != nil {
			return ref, config, err
		}
	}
	if f.api != "" {
		config.API = f.api
	}
	if f.baseURL != "" {
		config.BaseURL = f.baseURL
	}
	err = f.addKey(provider, &config, getenv)
	return ref, config, err
}

// known returns the account of a provider that the program knows by name, or of --base-url.
func (f *accountFlags) known(provider, id string) (job.ProviderConfig, error) {
	if provider == job.APIOffline {
		if _, ok := offline.Model(id); !ok {
			return job.ProviderConfig{}, usageError("unknown model %q of the provider %q; there is %q", id, provider, offline.Surveyor)
		}
		return job.ProviderConfig{API: job.APIOffline}, nil
	}
	if address, ok := localServers()[provider]; ok {
		return job.ProviderConfig{API: job.APIOpenAIChat, BaseURL: address}, nil
	}
	names := []string{job.APIOffline}
	for _, p := range modeltable.Providers() {
		api, ok := speaks(p.APIs)
		if !ok {
			if p.ID == provider && f.baseURL == "" {
				return job.ProviderConfig{}, usageError("the API of %s (%s) is not supported by this version", p.Name, strings.Join(p.APIs, ", "))
			}
			continue
		}
		names = append(names, p.ID)
		if p.ID == provider {
			return f.listed(p, api)
		}
	}
	if f.baseURL != "" {
		return job.ProviderConfig{API: job.APIOpenAIChat}, nil
	}
	for name := range localServers() {
		names = append(names, name)
	}
	slices.Sort(names)
	hint := "name its address with --base-url, or describe it in a file for --provider-config"
	if best := problem.Closest(provider, names); best != "" {
		hint = fmt.Sprintf("did you mean %q?", best)
	}
	return job.ProviderConfig{}, usageError("unknown provider %q in --model (%s); known are %s", provider, hint, strings.Join(names, ", "))
}

// listed returns the account of a provider of the table. A server that stands in for one with two APIs speaks the older.
func (f *accountFlags) listed(p modeltable.Provider, api string) (job.ProviderConfig, error) {
	if f.baseURL != "" && slices.Contains(p.APIs, job.APIOpenAIChat) {
		return job.ProviderConfig{API: job.APIOpenAIChat}, nil
	}
	if f.baseURL == "" && strings.Contains(p.BaseURLs[0], "*") {
		return job.ProviderConfig{}, usageError("each account of %s has an address of its own: give it with --base-url, as in --base-url %s",
			p.Name, strings.Replace(p.BaseURLs[0], "*", "NAME", 1))
	}
	return job.ProviderConfig{API: api, BaseURL: p.BaseURLs[0]}, nil
}

// addKey finds the key of an account that has none yet: in the named variable or file, else in the variable that belongs
// to the provider's name.
func (f *accountFlags) addKey(provider string, config *job.ProviderConfig, getenv func(string) string) error {
	switch {
	case f.keyEnv != "" && f.keyFile != "":
		return usageError("give --api-key-env or --api-key-file, not both")
	case f.keyEnv != "":
		if config.APIKey = getenv(f.keyEnv); config.APIKey == "" {
			return usageError("the variable %s that --api-key-env names is not set", f.keyEnv)
		}
		return nil
	case f.keyFile != "":
		data, err := readLimited(f.keyFile, maxKeyBytes)
		if err != nil {
			return usageError("--api-key-file: %v", err)
		}
		if config.APIKey = strings.TrimSpace(string(data)); config.APIKey == "" {
			return usageError("--api-key-file: %s is empty", f.keyFile)
		}
		return nil
	}
	if config.APIKey != "" || len(config.Headers) > 0 || config.API == job.APIOffline || config.API == job.APIScripted {
		return nil
	}
	variable := keyVariable(provider)
	config.APIKey = getenv(variable)
	_, local := localServers()[provider]
	if config.APIKey == "" && !local && f.baseURL == "" && f.configFile == "" {
		return usageError("no key for %s: set %s, or name another variable with --api-key-env or a file with --api-key-file", provider, variable)
	}
	return nil
}

// keyVariable is the environment variable that holds the key of a provider, as OPENAI_API_KEY.
func keyVariable(provider string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r - 'a' + 'A'
		}
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, provider) + "_API_KEY"
}

// configured returns the account of --provider-config with this name. The file is an object of accounts by name, each as
// a job document has it.
func (f *accountFlags) configured(provider string) (job.ProviderConfig, bool, error) {
	if f.configFile == "" {
		return job.ProviderConfig{}, false, nil
	}
	data, err := readLimited(f.configFile, maxConfigBytes)
	if err != nil {
		return job.ProviderConfig{}, false, usageError("--provider-config: %v", err)
	}
	spec, err := parsePart("providers", "--provider-config", f.configFile, data)
	if err != nil {
		return job.ProviderConfig{}, false, err
	}
	config, ok := spec.Providers[provider]
	return config, ok, nil
}

// parsePart reads a file that holds one field of a job document, as strictly as the document: it makes one of it, and keeps
// the problems of that field. flag is what named the file.
func parsePart(field, flag, file string, data []byte) (*job.Spec, error) {
	before, place := `{"`+field+`":`, "/"+field
	document := slices.Concat([]byte(before), bytes.TrimRight(data, "\r\n"), []byte("}"))
	var spec *job.Spec
	_, err := job.ParseWith(document, func(s *job.Spec) problem.List {
		spec = s
		return nil
	})
	var problems problem.List
	for _, p := range problem.Of(err) {
		if p.Code == "syntax" || p.Code == "trailing-data" || strings.HasPrefix(p.Pointer, place+"/") || p.Pointer == place && p.Code != "required" {
			if p.Line == 1 {
				p.Column = max(1, p.Column-len(before))
			}
			p.Pointer, p.Path = strings.TrimPrefix(p.Pointer, place), file
			problems = append(problems, p)
		}
	}
	if err := problems.Err(flag); err != nil {
		return nil, err
	}
	if spec == nil {
		return nil, err
	}
	return spec, nil
}

// readScript reads a script for the scripted model as JSON, and checks it so that problems have the file's lines.
func readScript(file string) (json.RawMessage, error) {
	data, err := readLimited(file, maxConfigBytes)
	if err != nil {
		return nil, usageError("--script: %v", err)
	}
	if _, err := scripted.Parse(data, file); err != nil {
		return nil, err
	}
	if json.Valid(data) {
		return data, nil
	}
	return scripted.FromYAML(data)
}

// readLimited reads a file that may hold at most limit bytes.
func readLimited(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", file, limit)
	}
	return data, nil
}
