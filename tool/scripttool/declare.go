package scripttool

import "github.com/hozo-run/hozo/llm"

func declarations(callees []llm.ToolSpec) string { return "" }
