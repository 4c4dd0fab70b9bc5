package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
)

func TestAccountsAreFoundByTheNameOfTheProvider(t *testing.T) {
	t.Parallel()
	dir := plant(t, map[string]string{
		"key":           "from-file\n",
		"accounts.json": `{"openai": {"api": "openai-chat", "baseUrl": "https://gateway.example/v1", "headers": {"X-Gateway-Key": "h"}}}`,
	})
	environment := map[string]string{"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a", "KIMI_CODING_API_KEY": "k", "MY_KEY": "m", "OLLAMA_API_KEY": ""}
	tests := map[string]struct {
		flags accountFlags
		ref   job.ModelRef
		want  job.ProviderConfig
	}{
		"offline": {accountFlags{model: "offline/surveyor"}, job.ModelRef{Provider: "offline", ID: "surveyor"},
			job.ProviderConfig{API: job.APIOffline}},
		"openai": {accountFlags{model: "openai/gpt-x"}, job.ModelRef{Provider: "openai", ID: "gpt-x"},
			job.ProviderConfig{API: job.APIOpenAIResponses, BaseURL: "https://api.openai.com/v1", APIKey: "o"}},
		"anthropic": {accountFlags{model: "anthropic/c"}, job.ModelRef{Provider: "anthropic", ID: "c"},
			job.ProviderConfig{API: job.APIAnthropicMessages, BaseURL: "https://api.anthropic.com", APIKey: "a"}},
		"a name with a hyphen": {accountFlags{model: "kimi-coding/k2"}, job.ModelRef{Provider: "kimi-coding", ID: "k2"},
			job.ProviderConfig{API: job.APIAnthropicMessages, BaseURL: "https://api.kimi.com/coding", APIKey: "k"}},
		"a local server needs no key": {accountFlags{model: "ollama/qwen3:8b"}, job.ModelRef{Provider: "ollama", ID: "qwen3:8b"},
			job.ProviderConfig{API: job.APIOpenAIChat, BaseURL: "http://127.0.0.1:11434/v1"}},
		"any server": {accountFlags{model: "mine/org/model", baseURL: "http://127.0.0.1:9/v1"}, job.ModelRef{Provider: "mine", ID: "org/model"},
			job.ProviderConfig{API: job.APIOpenAIChat, BaseURL: "http://127.0.0.1:9/v1"}},
		"any server with another API": {accountFlags{model: "mine/m", baseURL: "http://127.0.0.1:9", api: job.APIAnthropicMessages, keyEnv: "MY_KEY"},
			job.ModelRef{Provider: "mine", ID: "m"},
			job.ProviderConfig{API: job.APIAnthropicMessages, BaseURL: "http://127.0.0.1:9", APIKey: "m"}},
		"a key from a file": {accountFlags{model: "openai/gpt-x", keyFile: filepath.Join(dir, "key")}, job.ModelRef{Provider: "openai", ID: "gpt-x"},
			job.ProviderConfig{API: job.APIOpenAIResponses, BaseURL: "https://api.openai.com/v1", APIKey: "from-file"}},
		"a server in the place of OpenAI": {accountFlags{model: "openai/gpt-x", baseURL: "http://127.0.0.1:9/v1"}, job.ModelRef{Provider: "openai", ID: "gpt-x"},
			job.ProviderConfig{API: job.APIOpenAIChat, BaseURL: "http://127.0.0.1:9/v1", APIKey: "o"}},
		"the chat API of OpenAI": {accountFlags{model: "openai/gpt-x", api: job.APIOpenAIChat}, job.ModelRef{Provider: "openai", ID: "gpt-x"},
			job.ProviderConfig{API: job.APIOpenAIChat, BaseURL: "https://api.openai.com/v1", APIKey: "o"}},
		"azure": {accountFlags{model: "azure/gpt-x", baseURL: "https://name.openai.azure.com", keyEnv: "MY_KEY"}, job.ModelRef{Provider: "azure", ID: "gpt-x"},
			job.ProviderConfig{API: job.APIAzureOpenAI, BaseURL: "https://name.openai.azure.com", APIKey: "m"}},
		"an account of a file": {accountFlags{model: "openai/gpt-x", configFile: filepath.Join(dir, "accounts.json")}, job.ModelRef{Provider: "openai", ID: "gpt-x"},
			job.ProviderConfig{API: job.APIOpenAIChat, BaseURL: "https://gateway.example/v1", Headers: map[string]string{"X-Gateway-Key": "h"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ref, config, err := test.flags.resolve(func(name string) string { return environment[name] })
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.ref, ref); d != "" {
				t.Errorf("model (-want +got):\n%s", d)
			}
			if d := cmp.Diff(test.want, config); d != "" {
				t.Errorf("account (-want +got):\n%s", d)
			}
		})
	}
}

func TestAccountsAreReadStrictly(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, pointer, code string }{
		"unknown field": {`{"a": {"api": "openai-chat", "key": "k"}}`, "/a/key", "unknown-field"},
		"repeated name": {`{"a": {"api": "openai-chat"}, "a": {"api": "openai-chat"}}`, "/a", "duplicate-key"},
		"unknown API":   {`{"a": {"api": "soap"}}`, "/a/api", "unknown"},
		"wrong type":    {`{"a": {"api": 7}}`, "/a/api", "wrong-type"},
		"a list":        {`[]`, "", "wrong-type"},
		"no JSON":       {`{"a": `, "", "syntax"},
		"two documents": {`{"a": {"api": "offline"}} {}`, "", "syntax"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parsePart("providers", "--provider-config", "accounts.json", []byte(test.text))
			found := problem.Of(err)
			if len(found) == 0 || found[0].Path != "accounts.json" || found[0].Line != 1 {
				t.Fatalf("error %v", err)
			}
			for _, p := range found {
				if strings.HasPrefix(p.Pointer, test.pointer) && p.Code == test.code {
					return
				}
			}
			t.Errorf("problems %+v, want %s at %s", found, test.code, test.pointer)
		})
	}
}

func TestWithinKnowsDirectoriesFromNames(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		dir, path string
		want      bool
	}{
		{"/a", "/a", true}, {"/a", "/a/b", true}, {"/a", "/ab", false}, {"/a", "/", false}, {"/a", "/a/..b", true}, {"/a/b", "/a", false},
	} {
		if got := within(test.dir, test.path); got != test.want {
			t.Errorf("within(%q, %q) is %v", test.dir, test.path, got)
		}
	}
}

func TestRealPathFollowsLinksOfWhatExists(t *testing.T) {
	t.Parallel()
	dir := plant(t, map[string]string{"real/a": ""})
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	base, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := realPath(filepath.Join(dir, "link", "new", "er")), filepath.Join(base, "real", "new", "er"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRealPathFollowsLinksToWhatIsNotThereYet(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(plant(t, map[string]string{"real/a": ""}))
	if err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"relative": "real/new", "absolute": filepath.Join(dir, "real", "new"), "second": "relative", "circle": "circle"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for link, want := range map[string]string{"relative": "real/new", "absolute": "real/new", "second": "real/new", "relative/er": "real/new/er",
		"circle": "circle"} {
		if got := realPath(filepath.Join(dir, link)); got != filepath.Join(dir, want) {
			t.Errorf("%s: got %s, want %s", link, got, filepath.Join(dir, want))
		}
	}
}
