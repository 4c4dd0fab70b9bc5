package llm

import (
	"context"
	"encoding/json"
)

// Account is one configured provider with its credentials. It lives in memory only: no part of it may reach a log, an
// event, an error text or a file. An adapter keeps what it needs and never prints it.
type Account struct {
	// BaseURL is where the API is, without the path of the method ("https://api.openai.com/v1"). Empty means the API's
	// own address.
	BaseURL string
	APIKey  string
	// SigningKey signs every request, for APIs that take signatures; nil signs none.
	SigningKey *SigningKey
	// Region is the part of the world whose servers are meant, for APIs that have several.
	Region string
	// Headers are sent with every request.
	Headers map[string]string
	// TagHeaders are header templates for gateways: {jobId}, {agentId}, {agentVersion} and {purpose} are replaced.
	TagHeaders map[string]string
	// TagPreset is one of TagPresets, the headers by which a known gateway takes tags; "" is none. A header that Headers or
	// TagHeaders set is theirs.
	TagPreset string
	// APIVersion is the version of the API that the address is asked for, where an API takes one; "" asks for none.
	APIVersion string
	// Script is the inline fixture of the scripted provider.
	Script json.RawMessage
}

// The names of TagPresets.
const (
	// TagPresetCloudflare sends the tags of a job as cf-aig-metadata to Cloudflare's AI Gateway.
	TagPresetCloudflare = "cloudflare-ai-gateway"
	// TagPresetOpenRouter names this program to OpenRouter and groups the requests of a job by its id.
	TagPresetOpenRouter = "openrouter"
)

// TagPresets returns the gateways whose tag headers are known.
func TagPresets() []string { return []string{TagPresetCloudflare, TagPresetOpenRouter} }

// SigningKey is a key that never goes over the wire: requests carry a signature made with it.
type SigningKey struct {
	// ID names the key, Secret is the key itself, and Session the token that belongs to a key which is lent for some time.
	// All three are credentials.
	ID, Secret, Session string
}

// Adapter makes a provider from an account; each API family has one. It validates the account and does no input or
// output. It is called once a job. Errors are for the author of the job spec and name the field.
type Adapter func(Account) (Provider, error)

// Provider is one API at one address. It is safe for concurrent use.
type Provider interface {
	// Converse opens a dialog with a model; it encodes the opening once and does no input or output.
	Converse(Opening) (Dialog, error)
}

// ModelSource is implemented by a Provider that may know the entry of a model itself, such as one that plays a script.
// What it knows goes before the model table; false means that the table is to be asked.
type ModelSource interface {
	// Model returns the entry of the model with this id.
	Model(id string) (Model, bool)
}

// Opening is what a dialog begins with and keeps to its end: it becomes the byte-stable prefix of every request.
type Opening struct {
	// Model is the table entry of the model to talk to.
	Model Model
	// System is the part of the system prompt that all jobs of one agent version share; JobSystem is what this job adds.
	// On the wire JobSystem comes after System and is separated from it by a blank line. Both may be empty.
	System    string
	JobSystem string
	Tools     []ToolSpec
	// Thinking is one of Model.ThinkingLevels, or LevelOff.
	Thinking Level
	// Temperature is sent as it is; nil sends none.
	Temperature *float64
	// Tags fill the account's tag headers.
	Tags Tags
	// TypedAnswer says that the answer must be data of a given form. A reply that is such data must not be taken for a
	// tool call, so none is looked for in the text.
	TypedAnswer bool
}

// Tags name a job towards gateways.
type Tags struct{ JobID, AgentID, AgentVersion string }

// Purpose says what a request is for.
type Purpose string

// The closed set of purposes.
const (
	PurposeTurn       Purpose = "turn"
	PurposeCompaction Purpose = "compaction"
	PurposeRepair     Purpose = "repair"
	PurposeWriter     Purpose = "writer"
	PurposeSubagent   Purpose = "subagent"
	PurposeCheck      Purpose = "check"
)

// Dialog is a growing exchange with one model. Each message is encoded once, when it is appended, so a request
// costs the same at any depth. It is used by one goroutine at a time.
type Dialog interface {
	// Append adds a message. The last message of a request must not be an assistant's.
	Append(Message) error
	// Stream sends the dialog and reads one response. It reports progress to sink, in order and on the calling
	// goroutine, and returns when the response has ended. It does not append the response.
	//
	// It never retries. Any fault is an *Error; the Response then holds what had arrived (its Usage counts what was
	// reported). A response that ended before its finish mark is a fault, never a short answer. When ctx ends, the
	// error is context.Cause(ctx) (wrapped); when sink returns an error, Stream closes the connection and returns that
	// error (wrapped).
	Stream(ctx context.Context, call Call, sink Sink) (Response, error)
	// Request returns what Stream would send for call, without sending it: what is recorded of a request, and compared
	// when a job is replayed. Its errors are those of a request that cannot be built.
	Request(call Call) (Request, error)
	// PrefixHash is the hex SHA-256 of the request bytes up to the end of Opening.System.
	PrefixHash() string
}

// Skipper is a Dialog of a provider that keeps its own place, such as a script. When a request has been answered by an
// earlier attempt of the job, Skip is called in place of Stream, with the dialog as it was then.
type Skipper interface {
	// Skip goes on as if call had been made and answered. Its error says that the provider has no such answer.
	Skip(ctx context.Context, call Call) error
}

// Request is one request to a model as it goes on the wire, without its headers.
type Request struct {
	Method string
	// Path is the path of the address, without the host.
	Path string
	// Body is the body in pieces, which are sent one after the other. They must not be changed.
	Body [][]byte
}

// Call holds what may differ between the requests of one dialog; it is encoded after the messages.
type Call struct {
	// MaxOutputTokens bounds the answer; 0 leaves it to the adapter (Model.MaxOutputTokens where the API demands one).
	MaxOutputTokens int64
	Purpose         Purpose
}

// DeltaKind discriminates Delta.
type DeltaKind uint8

// The closed set of delta kinds. Only these count as progress of the model: comments, pings and empty chunks do not.
const (
	// DeltaText is a piece of the answer.
	DeltaText DeltaKind = iota + 1
	// DeltaThinking is a piece of thinking.
	DeltaThinking
	// DeltaToolName opens a tool call; Text is its name.
	DeltaToolName
	// DeltaToolArguments is a piece of a tool call's argument text.
	DeltaToolArguments
	// DeltaToolDone says that the tool call at Index is complete.
	DeltaToolDone
)

// Delta is one piece of a response as it streams.
type Delta struct {
	Kind DeltaKind
	// Index counts the tool calls of the response from 0; it is 0 for other kinds.
	Index int
	// Text is valid UTF-8 and only valid during the call of the sink. A rune is never split over two deltas.
	Text []byte
}

// Sink receives deltas. An error ends the stream.
type Sink func(Delta) error

// StopReason says why a complete response ended.
type StopReason string

// The stop reasons of a complete response. Anything else a provider may report (refusal, content filter, network error,
// an unknown word) is an *Error.
const (
	// StopEnd means that the model had finished; it may still have asked for tools.
	StopEnd StopReason = "end"
	// StopTools means that the model waits for tool results.
	StopTools StopReason = "tools"
	// StopLength means that the answer was cut at the output limit: no tool call of it may run.
	StopLength StopReason = "length"
)

// Response is one model response.
type Response struct {
	// Message is the assistant's message, its parts in the order of the stream. Its Origin is set.
	Message Message    `json:"message"`
	Stop    StopReason `json:"stop,omitempty"`
	// RawStop is the provider's own word.
	RawStop string `json:"rawStop,omitempty"`
	Usage   Usage  `json:"usage"`
	// UsageReported says that the provider counted; otherwise Usage is zero and the kernel estimates.
	UsageReported bool `json:"usageReported,omitempty"`
	// Billed is the price as the provider states it, or as it follows from a service tier that the provider names and whose
	// price is another than Model.Price; nil if Model.Price holds.
	Billed *MicroUSD `json:"billed,omitempty"`
	// ServedModel is the model that answered, if the provider names it.
	ServedModel string `json:"servedModel,omitempty"`
	// ID is the provider's id of the response, for support requests.
	ID string `json:"id,omitempty"`
	// TextCall says what became of tool calls that the model wrote into its text; nil if there were none, or if nobody
	// looked for them.
	TextCall *TextCall `json:"textCall,omitempty"`
}
