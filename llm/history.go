package llm

import "slices"

// noResult is what a model reads in place of a result that nobody has.
const noResult = "The call has no result: the run ended before it was made, or while it was under way. It may have had an effect."

// Answered returns a history in which every tool call has exactly one result, in the message after it and in the order
// of the calls, which is what every API demands. A call without one gets an error that says so; a result that answers no
// call of the message before it is left out. Whoever takes a history from elsewhere (another program, a run that was
// broken off) calls it before a dialog is opened with it. The messages of the history are not changed.
func Answered(history []Message) []Message {
	answered := make([]Message, 0, len(history))
	for i := 0; i < len(history); i++ {
		m := history[i]
		if m.Role == RoleTool {
			continue
		}
		answered = append(answered, m)
		calls := m.ToolCalls()
		if m.Role != RoleAssistant || len(calls) == 0 {
			continue
		}
		var results []Part
		for i+1 < len(history) && history[i+1].Role == RoleTool {
			i++
			results = append(results, history[i].Parts...)
		}
		answered = append(answered, Message{Role: RoleTool, Parts: inOrder(calls, results)})
	}
	return answered
}

// inOrder returns one result for each call. Results are found by our ids, and by the provider's where there are none.
func inOrder(calls []*ToolCall, results []Part) []Part {
	parts := make([]Part, 0, len(calls))
	taken := make([]bool, len(results))
	for _, call := range calls {
		at := -1
		for i, p := range results {
			if r := p.ToolResult; r != nil && !taken[i] && (r.CallID == call.ID && (r.CallID != "" || r.ProviderID == call.ProviderID)) {
				at = i
				break
			}
		}
		if at < 0 {
			parts = append(parts, Part{Type: PartToolResult, ToolResult: &ToolResult{CallID: call.ID, ProviderID: call.ProviderID,
				Name: call.Name, IsError: true, Content: []Part{TextPart(noResult)}}})
			continue
		}
		taken[at] = true
		parts = append(parts, results[at])
	}
	return slices.Clip(parts)
}
