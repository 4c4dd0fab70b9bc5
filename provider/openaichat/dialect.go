package openaichat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// dialect is what a server understands beyond the common core.
type dialect struct {
	developerRole  bool
	streamUsage    bool
	usageInclude   bool
	store          bool
	maxTokens      string
	thinking       string
	replayThinking bool
	// everyThinking sends an empty thinking field with assistant messages that have none.
	everyThinking  bool
	toolResultName bool
	emptyContent   bool
	parallelTools  *bool
	strictTools    bool
	missingFinish  bool
	// cacheKey sends a key that groups requests for the cache.
	cacheKey bool
	// cacheMarks marks for the cache where the shared part of the prompt and the last message end. Only gateways in front of
	// models that must be asked this way know the marks, and only in content that is a list.
	cacheMarks bool
	// shortIDs says that tool call ids must be nine letters and digits.
	shortIDs bool
}

const (
	fieldMaxTokens           = "max_tokens"
	fieldMaxCompletionTokens = "max_completion_tokens"
)

// hosts lists the defaults of known servers by the end of their host name. A server that is not listed gets
// unknownHost, which is the common core.
func hosts() []struct {
	suffix  string
	dialect dialect
} {
	type row = struct {
		suffix  string
		dialect dialect
	}
	openAI := dialect{developerRole: true, streamUsage: true, store: true, maxTokens: fieldMaxCompletionTokens,
		thinking: "openai", cacheKey: true}
	azure := openAI
	azure.store, azure.developerRole, azure.cacheKey = false, false, false
	return []row{
		{"api.openai.com", openAI},
		{"openai.azure.com", azure},
		{"openrouter.ai", dialect{streamUsage: true, usageInclude: true, maxTokens: fieldMaxTokens,
			thinking: "openrouter", replayThinking: true, cacheMarks: true}},
		{"ai-gateway.vercel.sh", dialect{streamUsage: true, maxTokens: fieldMaxTokens, thinking: "openrouter",
			replayThinking: true, cacheMarks: true}},
		{"api.groq.com", dialect{streamUsage: true, maxTokens: fieldMaxCompletionTokens, thinking: "openai"}},
		{"api.x.ai", dialect{streamUsage: true, maxTokens: fieldMaxCompletionTokens, thinking: "openai"}},
		{"api.deepseek.com", dialect{streamUsage: true, maxTokens: fieldMaxTokens, thinking: "deepseek",
			replayThinking: true, everyThinking: true}},
		{"api.together.xyz", dialect{streamUsage: true, maxTokens: fieldMaxTokens, thinking: "together"}},
		{"api.together.ai", dialect{streamUsage: true, maxTokens: fieldMaxTokens, thinking: "together"}},
		{"z.ai", dialect{streamUsage: true, maxTokens: fieldMaxTokens, thinking: "zai", replayThinking: true}},
		{"bigmodel.cn", dialect{streamUsage: true, maxTokens: fieldMaxTokens, thinking: "zai", replayThinking: true}},
		{"aliyuncs.com", dialect{streamUsage: true, maxTokens: fieldMaxTokens, thinking: "qwen"}},
		{"api.mistral.ai", dialect{maxTokens: fieldMaxTokens, thinking: "openai", toolResultName: true, shortIDs: true}},
		{"router.huggingface.co", dialect{streamUsage: true, maxTokens: fieldMaxTokens, thinking: "openai"}},
		{"moonshot.ai", localServer()},
		{"moonshot.cn", localServer()},
		{"ollama.com", localServer()},
		{"host.docker.internal", localServer()},
		{"localhost", localServer()},
		{"127.0.0.1", localServer()},
		{"::1", localServer()},
	}
}

// localServer is llama.cpp, vLLM or Ollama, or a host of the same models: their templates read earlier thinking back
// within a tool loop.
func localServer() dialect {
	return dialect{streamUsage: true, maxTokens: fieldMaxTokens, thinking: "openai", replayThinking: true}
}

func unknownHost() dialect {
	return dialect{streamUsage: true, maxTokens: fieldMaxTokens, thinking: "openai"}
}

// thinkingDialects are the ways in which a thinking level is sent.
var thinkingDialects = []string{"none", "openai", "openrouter", "deepseek", "zai", "qwen", "qwen-chat-template",
	"together"}

// dialectOf returns the defaults of the host with the model's own switches applied.
func dialectOf(host string, m llm.Model) (dialect, error) {
	d := unknownHost()
	for _, h := range hosts() {
		if host == h.suffix || strings.HasSuffix(host, "."+h.suffix) {
			d = h.dialect
			break
		}
	}
	// Only models that think know the role "developer".
	d.developerRole = d.developerRole && wire.Thinks(m)
	c := m.Compat
	wire.Override(&d.developerRole, c.DeveloperRole)
	wire.Override(&d.streamUsage, c.StreamUsage)
	wire.Override(&d.store, c.Store)
	wire.Override(&d.replayThinking, c.ReplayThinking)
	wire.Override(&d.toolResultName, c.ToolResultName)
	wire.Override(&d.emptyContent, c.EmptyContent)
	wire.Override(&d.strictTools, c.StrictTools)
	wire.Override(&d.missingFinish, c.MissingFinishReason)
	d.usageInclude = d.usageInclude && d.streamUsage
	d.everyThinking = d.everyThinking && d.replayThinking
	claude := strings.Contains(strings.ToLower(m.ID), "claude")
	d.cacheMarks = d.cacheMarks && claude
	if c.PromptCache != nil {
		d.cacheMarks, d.cacheKey = *c.PromptCache && claude, *c.PromptCache && !claude
	}
	d.parallelTools = c.ParallelToolCalls
	if c.MaxTokensField != "" {
		d.maxTokens = c.MaxTokensField
	}
	if c.ThinkingDialect != "" {
		d.thinking = c.ThinkingDialect
	}
	if d.maxTokens != fieldMaxTokens && d.maxTokens != fieldMaxCompletionTokens {
		return d, fmt.Errorf("compat maxTokensField: %q is neither %s nor %s", d.maxTokens, fieldMaxTokens,
			fieldMaxCompletionTokens)
	}
	if !slices.Contains(thinkingDialects, d.thinking) {
		return d, fmt.Errorf("compat thinkingDialect: %q is none of %s", d.thinking, strings.Join(thinkingDialects, " "))
	}
	return d, nil
}
