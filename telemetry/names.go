package telemetry

// The words of the GenAI conventions that are the same in both sets.
const (
	keyOperation     = "gen_ai.operation.name"
	keyProvider      = "gen_ai.provider.name"
	keyRequestModel  = "gen_ai.request.model"
	keyResponseModel = "gen_ai.response.model"
	keyFinish        = "gen_ai.response.finish_reasons"
	keyAgentID       = "gen_ai.agent.id"
	keyAgentName     = "gen_ai.agent.name"
	keyAgentVersion  = "gen_ai.agent.version"
	keyToolName      = "gen_ai.tool.name"
	keyToolType      = "gen_ai.tool.type"
	keyToolCallID    = "gen_ai.tool.call.id"
	keyToolArguments = "gen_ai.tool.call.arguments"
	keyOutput        = "gen_ai.output.messages"
	keyInputTokens   = "gen_ai.usage.input_tokens"
	keyOutputTokens  = "gen_ai.usage.output_tokens"
	keyCacheRead     = "gen_ai.usage.cache_read.input_tokens"
	keyReasoning     = "gen_ai.usage.reasoning.output_tokens"
	keyReasoningLvl  = "gen_ai.request.reasoning.level"
	keyTokenType     = "gen_ai.token.type"
	keyErrorType     = "error.type"
	keyMCPMethod     = "mcp.method.name"

	operationChat  = "chat"
	operationAgent = "invoke_agent"
	operationTool  = "execute_tool"
)

// Words of our own, for what the conventions do not name.
const (
	keySpan        = "hozo.span"
	keyJobID       = "hozo.job.id"
	keyOutcome     = "hozo.outcome"
	keyReason      = "hozo.reason"
	keyTurn        = "hozo.turn"
	keyTry         = "hozo.try"
	keyCost        = "hozo.cost.usd"
	keyEstimated   = "hozo.usage.estimated"
	keySimulated   = "hozo.model.simulated"
	keyPurpose     = "hozo.purpose"
	keyAllowed     = "hozo.tool.allowed"
	keySuccess     = "hozo.tool.success"
	keyResultBytes = "hozo.tool.result.bytes"
	keyNestedCalls = "hozo.tool.nested_calls"
	keyInterrupted = "hozo.interrupted"

	spanRequest = "hozo.request" // the requests of a turn have no span of their own in the events

	// errorOther is the error.type of a failure whose class is not known.
	errorOther = "_OTHER"
	errorTool  = "tool_error"
)

// optInLatest is the word of OTEL_SEMCONV_STABILITY_OPT_IN that selects the newest names.
const optInLatest = "gen_ai_latest_experimental"

// names is what differs between the two sets of the conventions. An instrument that a set does not have is nil.
type names struct {
	schemaURL  string
	cacheWrite string
	// agentID says that the span of a local agent carries its id.
	agentID bool
	// reasoningLevel says that there is a word for the thinking level.
	reasoningLevel bool

	chatDuration *instrument
	// tokens counts per request, by token type; the others are totals.
	tokens                                                        *instrument
	inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens  *instrument
	reasoningTokens, agentDuration, agentRequests, agentToolCalls *instrument
	toolDuration                                                  *instrument
}

// namesOf141 are the names of semantic conventions 1.41, which dashboards read.
func namesOf141() *names {
	return &names{
		schemaURL:    "https://opentelemetry.io/schemas/1.41.0",
		cacheWrite:   "gen_ai.usage.cache_creation.input_tokens",
		agentID:      true,
		chatDuration: seconds("gen_ai.client.operation.duration", "Duration of a request to a model."),
		tokens:       &instrument{name: "gen_ai.client.token.usage", measure: "{token}", help: "Tokens of a request, by type.", bounds: tokenBounds()},
	}
}

// namesLatest are the names of the conventions' own repository, version 0.1.0.
func namesLatest() *names {
	return &names{
		schemaURL:        "https://opentelemetry.io/schemas/gen-ai/0.1.0",
		cacheWrite:       "gen_ai.usage.cache_write.input_tokens",
		reasoningLevel:   true,
		chatDuration:     seconds("gen_ai.client.inference.duration", "Duration of a request to a model."),
		inputTokens:      counter("gen_ai.client.inference.usage.input_tokens", "{token}", "Tokens sent, with those of caches."),
		outputTokens:     counter("gen_ai.client.inference.usage.output_tokens", "{token}", "Tokens received."),
		cacheReadTokens:  counter("gen_ai.client.inference.usage.cache_read.input_tokens", "{token}", "Tokens read from a cache."),
		cacheWriteTokens: counter("gen_ai.client.inference.usage.cache_write.input_tokens", "{token}", "Tokens written to a cache."),
		reasoningTokens:  counter("gen_ai.client.inference.usage.reasoning.output_tokens", "{token}", "Tokens of thinking."),
		agentDuration:    seconds("gen_ai.invoke_agent.duration", "Duration of a job."),
		agentRequests:    &instrument{name: "gen_ai.invoke_agent.inference_calls", measure: "{call}", help: "Requests of a job.", bounds: callBounds()},
		agentToolCalls:   &instrument{name: "gen_ai.invoke_agent.tool_calls", measure: "{call}", help: "Tool calls of a job.", bounds: callBounds()},
		toolDuration:     seconds("gen_ai.execute_tool.duration", "Duration of a tool call."),
	}
}

// ours are the instruments of our own, in both sets.
type ours struct{ jobs, turns, toolCalls, cost *instrument }

func ourInstruments() ours {
	return ours{
		jobs:      counter("hozo.jobs", "{job}", "Jobs that ended, by outcome and reason."),
		turns:     counter("hozo.turns", "{turn}", "Turns."),
		toolCalls: counter("hozo.tool.calls", "{call}", "Tool calls, by tool and success."),
		cost:      &instrument{name: "hozo.cost", measure: "USD", help: "Cost of requests whose price is known.", sum: true, decimal: true},
	}
}

func counter(name, measure, help string) *instrument {
	return &instrument{name: name, measure: measure, help: help, sum: true}
}

func seconds(name, help string) *instrument {
	return &instrument{name: name, measure: "s", help: help, bounds: durationBounds()}
}

// durationBounds are those that the conventions advise: doubling from 10 ms.
func durationBounds() []float64 {
	return []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
}

// tokenBounds are those that the conventions advise: powers of four.
func tokenBounds() []float64 {
	return []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
}

func callBounds() []float64 { return []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512} }

// providerName returns the conventions' name of a provider; one that has none keeps its own.
func providerName(name string) string {
	switch name {
	case "gemini", "google":
		return "gcp.gemini"
	case "vertex":
		return "gcp.vertex_ai"
	case "bedrock":
		return "aws.bedrock"
	case "azure":
		return "azure.ai.openai"
	case "mistral":
		return "mistral_ai"
	case "moonshot":
		return "moonshot_ai"
	case "xai":
		return "x_ai"
	}
	return name
}

// finishReason returns the conventions' word for why a response ended.
func finishReason(stop string) string {
	switch stop {
	case "end":
		return "stop"
	case "tools":
		return "tool_call"
	}
	return stop
}
