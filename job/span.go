package job

// The names of spans. Exports map them to the names of the OpenTelemetry GenAI conventions.
const (
	SpanJob        = "hozo.job"
	SpanTurn       = "hozo.turn"
	SpanTool       = "hozo.tool"
	SpanCodemode   = "hozo.codemode"
	SpanMCP        = "hozo.mcp"
	SpanCompaction = "hozo.compaction"
	SpanRetry      = "hozo.retry"
)

// The states of a settled span.
const (
	SpanOK    = "ok"
	SpanError = "error"
)
