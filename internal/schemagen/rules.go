package main

import (
	"encoding/json"
	"maps"
	"reflect"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
)

// rule is what a struct's Go type cannot say about it.
type rule struct {
	required []string
	// fields change the schemas of single fields.
	fields map[string]func(*node)
	// whole changes the schema of the object.
	whole func(*node)
}

func (r rule) apply(n *node) {
	n.Required = append(n.Required, r.required...)
	for _, name := range n.Properties.names {
		if change := r.fields[name]; change != nil {
			change(n.Properties.nodes[name])
		}
	}
	if r.whole != nil {
		r.whole(n)
	}
}

// The changes that several fields share.

// said demands a text that is not blank.
func said(n *node) { n.Pattern = `\S` }

func filled(n *node) { n.MinLength = 1 }

func identifier(n *node) { n.MaxLength, n.Pattern = 128, "^[!-~]+$" }

// headerValues demands values that reach the server unchanged.
func headerValues(n *node) {
	n.PropertyNames = &node{Pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"}
	n.AdditionalProperties = &node{Type: "string", Pattern: headerValue}
}

const headerValue = `^([^\x00-\x20\x7f]([^\x00-\x08\x0a-\x1f\x7f]*[^\x00-\x20\x7f])?)?$`

func atLeastOne(n *node) { n.Minimum = "1" }

func between(low, high json.Number) func(*node) {
	return func(n *node) { n.Minimum, n.Maximum = low, high }
}

func oneOf(words ...string) func(*node) { return func(n *node) { n.Enum = words } }

func maxItems(n int) *int { return &n }

// inner applies changes to the items of a list.
func inner(change func(*node)) func(*node) { return func(n *node) { change(n.Items) } }

// specRules are the rules of job.Spec and what it holds; package job checks the same and more.
func specRules() map[string]rule {
	rules := map[string]rule{
		"Spec": {
			required: []string{"apiVersion", "agent", "task", "model", "providers", "workspace", "limits"},
			fields: map[string]func(*node){
				"apiVersion": func(n *node) { *n = node{Description: n.Description, Const: job.APIVersion} },
				"id":         func(n *node) { n.MaxLength, n.Pattern = 128, "^[!-~]*$" },
				"task":       said,
				"providers":  func(n *node) { n.PropertyNames = &node{MaxLength: 128, Pattern: "^[!-~]+$"} },
				"subagents":  func(n *node) { n.MaxItems = maxItems(job.MaxSubagents) },
			},
		},
		"Definition": {
			required: []string{"id", "instructions"},
			fields: map[string]func(*node){
				"id": identifier, "version": func(n *node) { n.MaxLength, n.Pattern = 128, "^[!-~]*$" }, "instructions": said,
				"denyCommandPatterns": inner(func(n *node) { n.MinLength, n.MaxLength = 1, 4096 }),
				"thinking":            orEmpty,
			},
		},
		"OutputSchema": {required: []string{"schema"}, fields: map[string]func(*node){
			"schema": func(n *node) { n.Type = "object" }, "maxRepairs": between("0", "10"),
			"name": func(n *node) { n.Pattern = `^[^\x00-\x1f\x7f]*$` },
		}},
		"ToolErrors": {fields: map[string]func(*node){
			"maxRetries": between("0", "10"), "retryOn": inner(oneOf("invalid-arguments", "unknown-tool", job.ToolErrorFailed)),
		}},
		"Approvals": {fields: map[string]func(*node){"tools": func(n *node) {
			n.PropertyNames = &node{Pattern: `\S`}
			n.AdditionalProperties = &node{Enum: []string{job.ApproveNever, job.ApproveFirstUse, job.ApproveAlways}}
		}}},
		"Loop": {required: []string{"kind"}, fields: map[string]func(*node){
			"kind": oneOf(job.LoopTranscript, job.LoopWorkingMemory),
		}, whole: writerOfItsLoop},
		"Writer": {fields: map[string]func(*node){"maxTokens": func(n *node) { n.Minimum = "256" }}},
		"Subagent": {required: []string{"name", "description", "agent"}, fields: map[string]func(*node){
			"name": func(n *node) { n.MinLength, n.MaxLength, n.Pattern = 1, 64, "^[A-Za-z0-9_-]+$" }, "description": said,
			"subagents": func(n *node) { n.MaxItems = maxItems(job.MaxSubagents) },
		}},
		"Resume": {required: []string{"attempt", "nextSeq"}, fields: map[string]func(*node){"attempt": atLeastOne, "nextSeq": atLeastOne}, whole: firstAttemptForks},
		"Decision": {required: []string{"waitId", "hash", "verdict"}, fields: map[string]func(*node){
			"waitId": said, "hash": said, "verdict": oneOf(job.VerdictApprove, job.VerdictReject, job.VerdictWithdraw),
		}},
		"HostTool": {required: []string{"name", "description", "inputSchema", "effect"}, fields: map[string]func(*node){
			"name": said, "description": said, "effect": oneOf("read", "write", "external"),
		}},
		"Check": {required: []string{"id", "tool"}, fields: map[string]func(*node){"id": said, "tool": said}},
		"MCP":   {required: []string{"servers"}},
		"MCPServer": {required: []string{"name", "url"}, fields: map[string]func(*node){
			"name": func(n *node) { n.MaxLength, n.Pattern = 32, "^[a-z][a-z0-9-]*$" }, "url": said,
		}},
		"Skill": {required: []string{"name"}, fields: map[string]func(*node){
			"name": func(n *node) { n.MaxLength, n.Pattern = 64, "^[a-z][a-z0-9-]*$" },
		}},
		"ModelRef": {required: []string{"provider", "id"}, fields: map[string]func(*node){
			"provider": filled, "id": said, "thinking": orEmpty,
		}},
		"Workspace": {required: []string{"root", "readOnly", "outDir"}, fields: map[string]func(*node){
			"root": said, "outDir": said,
			"readOnly": func(n *node) { n.MinItems, n.Items = 1, &node{Type: "string", Pattern: `\S`} },
		}},
		"Limits": {required: []string{"timeoutSec"}, fields: map[string]func(*node){
			"timeoutSec": between("0.001", "1e9"), "idleTimeoutSec": between("0", "1e9"), "maxTurns": atLeastOne,
			"maxCostUsd": func(n *node) { n.AnyOf = money(`([0-9]*[1-9][0-9]*(\.[0-9]+)?|[0-9]+\.[0-9]*[1-9][0-9]*)`, "0").AnyOf },
		}},
		"SubagentLimits": {fields: map[string]func(*node){
			"timeoutSec": between("0.001", "1e9"), "idleTimeoutSec": between("0", "1e9"), "maxTurns": atLeastOne,
			"maxCostUsd": func(n *node) { n.AnyOf = money(`([0-9]*[1-9][0-9]*(\.[0-9]+)?|[0-9]+\.[0-9]*[1-9][0-9]*)`, "0").AnyOf },
		}},
		"ContextBlock": {required: []string{"label", "place"}, fields: map[string]func(*node){
			"label": func(n *node) { n.Pattern = `^[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$` },
		}, whole: trustedAtSystemEnd},
		"Notice": {required: []string{"code", "message"}, fields: map[string]func(*node){"code": said, "message": said}},
		"Sampling": {fields: map[string]func(*node){
			"temperature": between("0", "2"), "maxOutputTokens": atLeastOne,
		}},
	}
	maps.Copy(rules, accountRules())
	maps.Copy(rules, messageRules())
	return rules
}

// messageRules are the rules of llm.Message and what it holds.
func messageRules() map[string]rule {
	return map[string]rule{
		"Message": {whole: messageByRole},
		"Part":    {whole: partByType},
		"Image": {required: []string{"mediaType", "data"}, fields: map[string]func(*node){
			"mediaType": oneOf("image/png", "image/jpeg", "image/gif", "image/webp"),
		}},
		"ToolCall": {required: []string{"id", "name"}, fields: map[string]func(*node){
			"id": filled, "name": said, "arguments": func(n *node) { n.Type = "object" },
			"textFormat": oneOf(append([]string{""}, llm.TextCallFormats()...)...),
		}, whole: argumentsOrError},
		"ToolResult": {required: []string{"callId", "name", "content"}, fields: map[string]func(*node){
			"callId": filled, "content": func(n *node) {
				n.MinItems, n.Items = 1, &node{AnyOf: []*node{{Ref: "#/$defs/TextPart"}, {Ref: "#/$defs/ImagePart"}}}
			},
		}},
	}
}

// accountRules are the rules of job.ProviderConfig and what it holds.
func accountRules() map[string]rule {
	return map[string]rule{
		"ProviderConfig": {required: []string{"api"}, fields: map[string]func(*node){
			"api":     oneOf(job.APIs()...),
			"baseUrl": func(n *node) { n.Pattern = `^([hH][tT][tT][pP][sS]?://[^\s/?#@]+[^\s?#@]*)?$` },
			"apiKey":  func(n *node) { n.Pattern = headerValue },
			"headers": headerValues,
			"tagHeaders": func(n *node) {
				headerValues(n)
				n.AdditionalProperties = &node{Type: "string", Pattern: `^([^{}\x00-\x1f\x7f]|\{(jobId|agentId|agentVersion|purpose)\})*$`}
			},
			"tagPreset":  oneOf(append([]string{""}, llm.TagPresets()...)...),
			"apiVersion": func(n *node) { n.Pattern = `^[a-zA-Z0-9.-]*$` },
			"models":     func(n *node) { n.PropertyNames = &node{Pattern: `\S`} },
			"script":     func(n *node) { n.Not = &node{Type: "null"} },
		}},
		"AWSAccess": {fields: map[string]func(*node){
			"accessKeyId":     func(n *node) { n.Pattern = headerValue },
			"secretAccessKey": func(n *node) { n.Pattern = headerValue },
			"sessionToken":    func(n *node) { n.Pattern = headerValue },
			"region":          func(n *node) { n.MaxLength, n.Pattern = 64, "^([a-z0-9][a-z0-9-]*)?$" },
		}, whole: accessKeyWhole},
		"ModelConfig": {fields: map[string]func(*node){
			"contextWindow": atLeastOne, "maxOutputTokens": atLeastOne, "thinkingLevels": func(n *node) { n.UniqueItems = true },
		}},
		"Price":     {required: []string{"inputPerMTok", "outputPerMTok"}},
		"PriceTier": {required: []string{"promptAbove", "inputPerMTok", "outputPerMTok"}, fields: map[string]func(*node){"promptAbove": atLeastOne}},
		"Compat": {fields: map[string]func(*node){
			"maxTokensField": oneOf("", "max_tokens", "max_completion_tokens"),
			"thinkingDialect": oneOf("", "none", "openai", "openrouter", "deepseek", "zai", "qwen", "qwen-chat-template", "together",
				"effort", "budget", "adaptive", "level"),
			"method":          oneOf("", "chat", "responses"),
			"deployment":      func(n *node) { n.Pattern = `^(\S(.*\S)?)?$` },
			"thinkingEfforts": func(n *node) { n.AdditionalProperties = &node{Type: "string", Pattern: `\S`} },
			"textToolCalls":   oneOf(append([]string{"", llm.TextCallsOff, llm.TextCallsAuto}, llm.TextCallFormats()...)...),
		}},
	}
}

// orEmpty lets an enumerated field be empty, which means the same as absent.
func orEmpty(n *node) { n.Enum = append([]string{""}, n.Enum...) }

// writerOfItsLoop allows a writer in the loop that has one.
func writerOfItsLoop(n *node) {
	plain, kept := &members{}, &members{}
	kept.set("kind", &node{Const: job.LoopWorkingMemory})
	plain.set("kind", &node{Const: job.LoopTranscript})
	plain.set("writer", &node{Type: "null"})
	n.AnyOf = []*node{{Properties: kept}, {Properties: plain}}
}

// firstAttemptForks demands an earlier attempt of whatever is no fork.
func firstAttemptForks(n *node) {
	fork, later := &members{}, &members{}
	fork.set("fork", &node{Const: true})
	later.set("attempt", &node{Minimum: "2"})
	n.AnyOf = []*node{{Properties: fork, Required: []string{"fork"}}, {Properties: later}}
}

func trustedAtSystemEnd(n *node) {
	atEnd, plain := &members{}, &members{}
	atEnd.set("place", &node{Const: string(job.PlaceSystemEnd)})
	plain.set("trusted", &node{Const: false})
	n.AnyOf = []*node{{Properties: atEnd}, {Properties: plain}}
}

// accessKeyWhole demands the two halves of an access key together, or nothing of one.
func accessKeyWhole(n *node) {
	whole, none := &members{}, &members{}
	for _, name := range []string{"accessKeyId", "secretAccessKey"} {
		whole.set(name, &node{MinLength: 1})
		none.set(name, &node{Const: ""})
	}
	none.set("sessionToken", &node{Const: ""})
	n.AnyOf = []*node{{Required: []string{"accessKeyId", "secretAccessKey"}, Properties: whole}, {Properties: none}}
}

func argumentsOrError(n *node) {
	withError := &members{}
	withError.set("argumentsError", &node{MinLength: 1})
	n.OneOf = []*node{{Required: []string{"arguments"}}, {Required: []string{"argumentsError"}, Properties: withError}}
}

// partNames are the definitions of the five variants of a part.
var partNames = map[string]string{
	"text": "TextPart", "thinking": "ThinkingPart", "image": "ImagePart", "tool-call": "ToolCallPart", "tool-result": "ToolResultPart",
}

// partVariants returns the fields and the required fields of a part by type.
func partVariants() map[string][2][]string {
	return map[string][2][]string{
		"text":        {{"text", "signature"}, nil},
		"thinking":    {{"text", "signature", "redacted", "field"}, nil},
		"image":       {{"image"}, {"image"}},
		"tool-call":   {{"toolCall", "signature"}, {"toolCall"}},
		"tool-result": {{"toolResult"}, {"toolResult"}},
	}
}

// partByType replaces the fields of a part by its variants.
func partByType(n *node) {
	types := n.Properties.nodes["type"].Enum
	*n = node{Description: n.Description, OneOf: refsOfParts(types...)}
}

func refsOfParts(types ...string) []*node {
	var refs []*node
	for _, t := range types {
		refs = append(refs, &node{Ref: "#/$defs/" + partNames[t]})
	}
	return refs
}

// addPartVariants adds the definitions that partByType refers to.
func addPartVariants(b *builder, part reflect.Type, types []string) {
	plain := &builder{docs: b.docs, defs: b.defs}
	full := plain.object(part)
	for _, t := range types {
		fields := partVariants()[t]
		b.defs.set(partNames[t], variant(full, "type", t, fields[0], fields[1]))
	}
}

// messageByRole restricts the parts of a message to those that its role may hold.
func messageByRole(n *node) {
	holds := func(types ...string) *node {
		return &node{Type: "array", MinItems: 1, Items: &node{AnyOf: refsOfParts(types...)}}
	}
	user := variant(n, "role", "user", nil, []string{"parts"})
	user.Properties.set("parts", holds("text", "image"))
	assistant := variant(n, "role", "assistant", []string{"origin"}, []string{"parts"})
	assistant.Properties.set("parts", holds("text", "thinking", "tool-call"))
	tool := variant(n, "role", "tool", nil, []string{"parts"})
	tool.Properties.set("parts", holds("tool-result"))
	*n = node{Description: n.Description, OneOf: []*node{user, assistant, tool}}
}
