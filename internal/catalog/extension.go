package catalog

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
)

// The x- keys.
const (
	keyLoop       = "x-loop"
	keySubagents  = "x-subagents"
	keyOutput     = "x-output"
	keyBudget     = "x-budget"
	keyApprovals  = "x-approvals"
	keyToolErrors = "x-tool-errors"
)

// extensionKeys are the x- keys in canonical order.
func extensionKeys() []string {
	return []string{keyLoop, keySubagents, keyOutput, keyBudget, keyApprovals, keyToolErrors}
}

// Budget bounds a job, or a subagent for one call of it. A nil field is no bound of the package's.
type Budget struct {
	MaxCostUSD *llm.USD `json:"maxCostUsd,omitempty"`
	MaxTurns   *int64   `json:"maxTurns,omitempty"`
	// TimeoutSec is above 0; an IdleTimeoutSec of 0 switches the watch off.
	TimeoutSec     *float64 `json:"timeoutSec,omitempty"`
	IdleTimeoutSec *float64 `json:"idleTimeoutSec,omitempty"`
}

// output is x-output: the answer that is asked for, whose schema is written out or names a file of the package.
type output struct {
	job.OutputSchema
	file string
}

// extension reads an x- key and keeps its value.
func (r reader) extension(key string, v value) {
	switch key {
	case keyLoop:
		v = readLoop(r, v, "/"+key)
	case keySubagents:
		v = readRoster(r, v, "/"+key)
	case keyOutput:
		v = readOutput(r, v, "/"+key)
	case keyBudget:
		v = readBudget(r, v, "/"+key)
	case keyApprovals:
		v = readApprovals(r, v, "/"+key)
	case keyToolErrors:
		v = readToolErrors(r, v, "/"+key)
	}
	r.pkg.Extensions = append(r.pkg.Extensions, Extension{Key: key, value: v})
}

// decodeShape checks the shape of v and returns its canonical form and what it says, nil if anything is wrong with it.
func decodeShape[T any](r reader, v value, pointer string, members []member) (value, *T) {
	before := len(*r.list)
	v = r.shape(v, pointer, members)
	r.numbers(v, pointer)
	if len(*r.list) > before {
		return v, nil
	}
	var said T
	if err := json.Unmarshal(v.appendJSON(nil), &said); err != nil {
		r.add(CodeExtensionInvalid, pointer, v.mark, "", err.Error())
		return v, nil
	}
	return v, &said
}

func readLoop(r reader, v value, pointer string) value {
	v, r.pkg.loop = decodeShape[job.Loop](r, v, pointer, []member{
		{key: "kind", required: true, read: checked(oneOf(job.LoopTranscript, job.LoopWorkingMemory))},
		{key: "writer", read: mapping([]member{
			{key: "model", read: mapping([]member{
				{key: "provider", read: checked(isText)},
				{key: "id", required: true, read: checked(isText)},
				{key: "thinking", read: checked(isText)},
			})},
			{key: "maxTokens", read: checked(wholeNumber(1))},
			{key: "prompt", read: checked(isText)},
		})},
	})
	return v
}

func readBudget(r reader, v value, pointer string) value {
	v, r.pkg.budget = decodeShape[Budget](r, v, pointer, budgetMembers())
	return v
}

func budgetMembers() []member {
	return []member{
		{key: "maxCostUsd", read: checked(dollars)},
		{key: "maxTurns", read: checked(wholeNumber(1))},
		{key: "timeoutSec", read: checked(secondsText(false))},
		{key: "idleTimeoutSec", read: checked(secondsText(true))},
	}
}

// over returns the bounds of b and, where it has none, those of other.
func (b *Budget) over(other *Budget) *Budget {
	switch {
	case b == nil:
		return other
	case other == nil:
		return b
	}
	return &Budget{cmp.Or(b.MaxCostUSD, other.MaxCostUSD), cmp.Or(b.MaxTurns, other.MaxTurns), cmp.Or(b.TimeoutSec, other.TimeoutSec),
		cmp.Or(b.IdleTimeoutSec, other.IdleTimeoutSec)}
}

func readToolErrors(r reader, v value, pointer string) value {
	v, r.pkg.toolErrors = decodeShape[job.ToolErrors](r, v, pointer, []member{
		{key: "maxRetries", required: true, read: checked(wholeNumber(0))},
		{key: "retryOn", required: true, read: checked(isTexts)},
	})
	return v
}

// readOutput reads x-output, whose schema is a mapping or the path of a file in schemas/.
func readOutput(r reader, v value, pointer string) value {
	file, before := "", len(*r.list)
	v = r.shape(v, pointer, []member{
		{key: "schema", required: true, read: func(r reader, v value, pointer string) value {
			switch _, ok := filePath(v.text, folderSchemas, ".json"); {
			case v.kind == kindText && ok:
				file = v.text
			case v.kind == kindText:
				r.add(CodeSchemaUnknown, pointer, v.mark, "put the file into the folder schemas and write schema: schemas/<name>.json",
					"must name a file of the package or be a JSON Schema")
			case v.kind != kindMapping:
				r.add(CodeExtensionInvalid, pointer, v.mark, "", "must be a JSON Schema or the path of one, not "+v.kind.String())
			}
			return v
		}},
		{key: "name", read: checked(isText)},
		{key: "maxRepairs", read: checked(wholeNumber(0))},
	})
	r.numbers(v, pointer)
	if len(*r.list) > before {
		return v
	}
	said := output{file: file}
	if err := json.Unmarshal(v.appendJSON(nil), &said.OutputSchema); err != nil {
		r.add(CodeExtensionInvalid, pointer, v.mark, "", err.Error())
		return v
	}
	if file != "" {
		said.Schema = nil // checkReferences puts in what the file holds
	}
	r.pkg.output = &said
	return v
}

// readApprovals reads which tools need a decision: a mapping of rules by tool.
func readApprovals(r reader, v value, pointer string) value {
	before := len(*r.list)
	if v.kind != kindMapping {
		r.add(CodeExtensionInvalid, pointer, v.mark, "write one line for each tool, such as shell: always", "must be a mapping, not "+v.kind.String())
		return v
	}
	rule := checked(oneOf(job.ApproveNever, job.ApproveFirstUse, job.ApproveAlways))
	rules := make(map[string]string)
	for i, key := range v.keys {
		at := pointer + "/" + v.token(i)
		if !validTool(strings.ReplaceAll(key.text, ".", "_")) {
			r.add(CodeToolInvalid, at, key.mark, "a tool name has letters, digits, _ and -, at most 128", "invalid tool name "+strconv.Quote(excerpt(key.text)))
		}
		rules[key.text] = rule(r, v.items[i], at).text
	}
	if len(*r.list) == before {
		r.pkg.approvals = rules
	}
	return v.sorted()
}

// sorted returns a mapping with its keys in order.
func (v value) sorted() value {
	order := make([]int, len(v.keys))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(v.keys[a].text, v.keys[b].text) })
	sorted := v
	sorted.keys, sorted.items = nil, nil
	for _, i := range order {
		sorted.keys, sorted.items = append(sorted.keys, v.keys[i]), append(sorted.items, v.items[i])
	}
	return sorted
}
