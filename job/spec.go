// Package job is the contract between whoever asks for work and the runtime that does it: one self-contained Spec goes
// in, a gapless stream of Events comes out and ends in exactly one Outcome. A Spec is enough to run: nothing is looked
// up, discovered or remembered between jobs. The package holds the types, the strict decoding with all problems in one
// answer, and the checks that need no machine; it starts nothing itself. Runtimes are kernel (in process) and jobproc
// (as a child process); both pass the suite in jobtest.
package job

import (
	"encoding/json"

	"github.com/hozo-run/hozo/llm"
)

// APIVersion is the version of the Spec this package reads.
const APIVersion = "hozo/v1"

// Spec is one request for work.
type Spec struct {
	// APIVersion is the version of the contract, "hozo/v1".
	APIVersion string `json:"apiVersion"`
	// ID is the jobId of the events; absent means that the runtime makes one. It never reaches a model.
	ID    string     `json:"id,omitempty"`
	Agent Definition `json:"agent"`
	// Task is the first user message, verbatim.
	Task  string   `json:"task"`
	Model ModelRef `json:"model"`
	// Providers are the configured accounts by id, with their credentials. They stay in memory.
	Providers map[string]ProviderConfig `json:"providers"`
	Workspace Workspace                 `json:"workspace"`
	Limits    Limits                    `json:"limits"`
	// Metadata is opaque: echoed on job.started, never shown to the model.
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	// History holds earlier messages of the same exchange; it must not end with an assistant message that awaits tool
	// results.
	History []llm.Message `json:"history,omitempty"`
	// Context holds labelled blocks that go after the shared prefix of the prompt.
	Context []ContextBlock `json:"context,omitempty"`
	// Notices are emitted right after job.started and never shown to the model.
	Notices  []Notice `json:"notices,omitempty"`
	Sampling Sampling `json:"sampling,omitzero"`
	// MCP lists the MCP servers that the agent may name.
	MCP *MCP `json:"mcp,omitempty"`
	// Host lists the tools that whoever starts the job lends over Ports.Host.
	Host []HostTool `json:"host,omitempty"`
	// Checks name host tools that judge the answer before it is reported.
	Checks []Check `json:"checks,omitempty"`

	// The fields below are part of the contract but not of this version of the runtime: a spec that sets one is refused
	// as unsupported.

	Output     *OutputSchema `json:"output,omitempty"`
	ToolErrors *ToolErrors   `json:"toolErrors,omitempty"`
	Approvals  *Approvals    `json:"approvals,omitempty"`
	Loop       *Loop         `json:"loop,omitempty"`
	Subagents  []Subagent    `json:"subagents,omitempty"`
	Resume     *Resume       `json:"resume,omitempty"`
}

// Definition is an agent as a job carries it.
type Definition struct {
	// ID and Version identify the agent in events; neither is looked up.
	ID      string `json:"id"`
	Version string `json:"version"`
	// Instructions are the beginning of the system prompt, verbatim.
	Instructions string `json:"instructions"`
	// Skills follow the instructions in this order.
	Skills []Skill `json:"skills,omitempty"`
	// Tools is the allowlist by name. Absent (nil) means every kernel tool; empty means none.
	Tools []string `json:"tools,omitempty"`
	// DenyCommandPatterns are RE2 expressions; a call whose command matches one is blocked.
	DenyCommandPatterns []string `json:"denyCommandPatterns,omitempty"`
	// Thinking is the default level; ModelRef.Thinking overrides it.
	Thinking llm.Level `json:"thinking,omitempty"`
}

// MarshalJSON keeps the difference between absent and empty tools.
func (d Definition) MarshalJSON() ([]byte, error) {
	type plain Definition
	if d.Tools == nil {
		return json.Marshal(plain(d))
	}
	return json.Marshal(struct {
		plain
		Tools []string `json:"tools"`
	}{plain(d), d.Tools})
}

// Skill is a named Markdown text added to the instructions. Name matches [a-z][a-z0-9-]* in full, at most 64 bytes.
type Skill struct {
	Name    string `json:"name"`
	Content string `json:"content"`
}

// ModelRef chooses a model of one of the Spec's providers.
type ModelRef struct {
	// Provider is a key of Spec.Providers.
	Provider string    `json:"provider"`
	ID       string    `json:"id"`
	Thinking llm.Level `json:"thinking,omitempty"`
}

// ProviderConfig is one configured account.
type ProviderConfig struct {
	// API is one of the names of APIs.
	API     string `json:"api"`
	BaseURL string `json:"baseUrl,omitempty"`
	APIKey  string `json:"apiKey,omitempty"`
	// AWS is how an account of the API "bedrock-converse" signs its requests and where its models run.
	AWS     *AWSAccess        `json:"aws,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// TagHeaders are header templates over {jobId}, {agentId}, {agentVersion} and {purpose}.
	TagHeaders map[string]string `json:"tagHeaders,omitempty"`
	// TagPreset names a gateway whose tag headers are known: one of llm.TagPresets. Headers that are given win.
	TagPreset string `json:"tagPreset,omitempty"`
	// APIVersion is the api-version that requests of the API "azure-openai" ask for; no other API takes one.
	APIVersion string `json:"apiVersion,omitempty"`
	// Models override the embedded model table for this account, by model id.
	Models map[string]ModelConfig `json:"models,omitempty"`
	// Script is the inline fixture of the scripted API; no other API takes one.
	Script json.RawMessage `json:"script,omitempty"`
}

// AWSAccess is an access key of AWS and a region. The key is a credential as a whole; an account that has an API key needs
// none. Nothing of it is looked up in the environment or in files.
type AWSAccess struct {
	AccessKeyID     string `json:"accessKeyId,omitempty"`
	SecretAccessKey string `json:"secretAccessKey,omitempty"`
	// SessionToken belongs to an access key that is lent for some time.
	SessionToken string `json:"sessionToken,omitempty"`
	// Region is a region such as "eu-central-1". The region in the ARN of a model goes before it, that in the host of
	// the base URL after it.
	Region string `json:"region,omitempty"`
}

// ModelConfig overrides single fields of a model's table entry; an absent field keeps the table's value.
type ModelConfig struct {
	ContextWindow   *int64      `json:"contextWindow,omitempty"`
	MaxOutputTokens *int64      `json:"maxOutputTokens,omitempty"`
	Price           *llm.Price  `json:"price,omitempty"`
	ThinkingLevels  []llm.Level `json:"thinkingLevels,omitempty"`
	Images          *bool       `json:"images,omitempty"`
	Compat          *llm.Compat `json:"compat,omitempty"`
}

// Workspace names the directories of a job. Paths are absolute or relative to the working directory of the process.
type Workspace struct {
	// Root is where a relative path of a read tool starts.
	Root string `json:"root"`
	// ReadOnly lists what may be read. The first entry is a directory: a search without a path looks there. The others
	// are directories or files; a file named WORKSPACE.md is the guide.
	ReadOnly []string `json:"readOnly"`
	// OutDir is the only directory that may be written to.
	OutDir string `json:"outDir"`
	// TmpDir is for processes; absent means a private directory that the starter makes and removes.
	TmpDir string `json:"tmpDir,omitempty"`
}

// Limits bound a job.
type Limits struct {
	// TimeoutSec is the wall clock of the job in seconds; it is required and above 0.
	TimeoutSec float64 `json:"timeoutSec"`
	// IdleTimeoutSec ends a request whose model makes no progress for so many seconds; 0 switches it off, absent means
	// DefaultIdleTimeoutSec.
	IdleTimeoutSec *float64 `json:"idleTimeoutSec,omitempty"`
	// MaxTurns bounds model responses; absent means no bound.
	MaxTurns *int64 `json:"maxTurns,omitempty"`
	// MaxCostUSD bounds the money; absent means no bound. It needs a model whose price is known.
	MaxCostUSD *llm.USD `json:"maxCostUsd,omitempty"`
}

// DefaultIdleTimeoutSec is the idle timeout of a spec that names none.
const DefaultIdleTimeoutSec = 120

// Place says where a context block goes.
type Place string

// The closed set of places.
const (
	// PlaceSystemEnd is the end of the system prompt, after everything that jobs share.
	PlaceSystemEnd Place = "system-end"
	// PlaceBeforeTask is a user message before the task.
	PlaceBeforeTask Place = "before-task"
)

// ContextBlock is labelled text for the model: data, unless Trusted.
type ContextBlock struct {
	Label string `json:"label"`
	Data  string `json:"data"`
	Place Place  `json:"place"`
	// Trusted writes the block as rules to follow; only at PlaceSystemEnd.
	Trusted bool `json:"trusted,omitempty"`
}

// Notice is a remark about the job for people.
type Notice struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Sampling holds the values passed to the model.
type Sampling struct {
	Temperature     *float64 `json:"temperature,omitempty"`
	MaxOutputTokens *int64   `json:"maxOutputTokens,omitempty"`
}

// MCP lists the MCP servers that the agent may name.
type MCP struct {
	Servers []MCPServer `json:"servers"`
}

// MCPServer is one MCP server over HTTP, ready to use.
type MCPServer struct {
	Name       string            `json:"name"`
	URL        string            `json:"url"`
	Headers    map[string]string `json:"headers,omitempty"`
	TimeoutSec float64           `json:"timeoutSec,omitempty"`
	// AllowedTools may run although the server does not claim them to be read-only.
	AllowedTools []string `json:"allowedTools,omitempty"`
	// Required makes the job fail if the server cannot be reached.
	Required bool `json:"required,omitempty"`
	// Pins hold the hash of a tool's definition by tool name; a tool that drifted is withheld.
	Pins map[string]string `json:"pins,omitempty"`
}

// OutputSchema asks for a typed answer.
type OutputSchema struct {
	Schema     json.RawMessage `json:"schema"`
	Name       string          `json:"name,omitempty"`
	MaxRepairs *int64          `json:"maxRepairs,omitempty"`
}

// Check is a host tool that judges the answer before the job ends.
type Check struct {
	ID   string `json:"id"`
	Tool string `json:"tool"`
}

// ToolErrors bounds how often failed calls go back to the model: a failure beyond that ends the job. Without it they always
// go back.
type ToolErrors struct {
	// MaxRetries is how many failures of the kinds in RetryOn go back in one job, 0 to 10.
	MaxRetries int64 `json:"maxRetries"`
	// RetryOn lists the kinds that may go back: "invalid-arguments", "unknown-tool", "tool-error".
	RetryOn []string `json:"retryOn"`
}

// ToolErrorFailed is the kind of a call that ran and failed, or was blocked. The two other kinds are the codes of calls
// that could not run.
const ToolErrorFailed = "tool-error"

// Approvals says which tools need a decision before they run, by tool name. A tool that is not named needs none.
type Approvals struct {
	Tools map[string]string `json:"tools"`
}

// When a tool needs a decision.
const (
	ApproveNever = "never"
	// ApproveFirstUse asks until a call of the tool has been approved in this job.
	ApproveFirstUse = "first-use"
	ApproveAlways   = "always"
)

// Any reports whether any tool may need a decision. It may be called on nil.
func (a *Approvals) Any() bool {
	if a == nil {
		return false
	}
	for _, when := range a.Tools {
		if when != ApproveNever {
			return true
		}
	}
	return false
}

// Loop chooses the loop strategy.
type Loop struct {
	// Kind is LoopTranscript (the default) or LoopWorkingMemory.
	Kind   string  `json:"kind"`
	Writer *Writer `json:"writer,omitempty"`
}

// The kinds of loops.
const (
	LoopTranscript = "transcript"
	// LoopWorkingMemory makes one call a step and keeps a document instead of the transcript.
	LoopWorkingMemory = "working-memory"
)

// Writer configures the writer of the working-memory loop.
type Writer struct {
	// Model is who writes; absent means the model of the agent, which does not think then.
	Model *ModelRef `json:"model,omitempty"`
	// MaxTokens bounds the document; absent means 8,000 or a quarter of the window of the model, whatever is less.
	MaxTokens *int64 `json:"maxTokens,omitempty"`
	// Prompt replaces what the writer is told about its work.
	Prompt string `json:"prompt,omitempty"`
}

// Subagent is an agent that the job's agent may call like a tool, with an objective. It has a dialog of its own and shares
// the model, the providers, the MCP servers, the host and the workspace of its parent; the money it spends is its parent's.
type Subagent struct {
	// Name is the name of the tool; it is offered whatever Tools says.
	Name string `json:"name"`
	// Description tells the parent what the subagent is for.
	Description string     `json:"description"`
	Agent       Definition `json:"agent"`
	Loop        *Loop      `json:"loop,omitempty"`
	// Limits are for one call; those of the job hold as well. Absent MaxTurns means DefaultSubagentTurns.
	Limits *SubagentLimits `json:"limits,omitempty"`
	// Subagents are those that the subagent may call itself; MaxSubagentDepth bounds the depth.
	Subagents []Subagent `json:"subagents,omitempty"`
}

const (
	// DefaultSubagentTurns bounds a subagent whose limits do not.
	DefaultSubagentTurns = 6
	// MaxSubagentDepth is how deep rosters may be nested.
	MaxSubagentDepth = 3
	// MaxSubagents is how many entries one roster may have.
	MaxSubagents = 32
)

// SubagentLimits are Limits of which none is required.
type SubagentLimits Limits

// HostTool is a tool lent by the caller.
type HostTool struct {
	Name        string          `json:"name"`
	Version     string          `json:"version,omitempty"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	// Effect is "read", "write" or "external".
	Effect     string `json:"effect"`
	Idempotent bool   `json:"idempotent,omitempty"`
	// Egress refuses arguments that quote content read in this job.
	Egress bool `json:"egress,omitempty"`
	// Usage is a sentence for the research block of the prompt; Research puts it there.
	Usage    string `json:"usage,omitempty"`
	Research bool   `json:"research,omitempty"`
}

// Resume continues a job from its journal.
type Resume struct {
	Attempt   int64      `json:"attempt"`
	NextSeq   int64      `json:"nextSeq"`
	Decisions []Decision `json:"decisions,omitempty"`
	// Fork says that the journal is another job's: its frames are taken over, and this job goes on from their end. Attempt and
	// NextSeq are 1 then.
	Fork bool `json:"fork,omitempty"`
}

// Decision answers one wait of a suspended job.
type Decision struct {
	WaitID string `json:"waitId"`
	Hash   string `json:"hash"`
	// Verdict is one of the three below.
	Verdict string `json:"verdict"`
	// Arguments replace those of an approved call.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Rationale is told to the model of a rejected call.
	Rationale string `json:"rationale,omitempty"`
}

// The verdicts about a call that waits. A rejected call is answered as such; withdrawing one ends the job as aborted.
const (
	VerdictApprove  = "approve"
	VerdictReject   = "reject"
	VerdictWithdraw = "withdraw"
)

// The API families that a ProviderConfig can name.
const (
	APIOpenAIChat        = "openai-chat"
	APIOpenAIResponses   = "openai-responses"
	APIAnthropicMessages = "anthropic-messages"
	APIGoogleGenerate    = "google-generate"
	APIAzureOpenAI       = "azure-openai"
	APIBedrockConverse   = "bedrock-converse"
	APIScripted          = "scripted"
	APIOffline           = "offline"
)

// APIs returns the name of every API family of the contract, whether this runtime has an adapter for it or not.
func APIs() []string {
	return []string{APIOpenAIChat, APIOpenAIResponses, APIAnthropicMessages, APIGoogleGenerate, APIAzureOpenAI, APIBedrockConverse,
		APIScripted, APIOffline}
}
