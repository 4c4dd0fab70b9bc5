package mcptool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hozo-run/hozo/tool"
)

// maxDescription bounds the description of one tool.
const maxDescription = 8 << 10

// DefinitionHash returns the hash by which a tool is pinned: SHA-256, in hexadecimal, over the RFC 8785 form of name,
// description, inputSchema and annotations of a tool as a server lists it. An absent description is empty; of the
// annotations, readOnlyHint and idempotentHint are false when absent, the others are left out.
func DefinitionHash(definition json.RawMessage) (string, error) {
	var t mcp.Tool
	if err := json.Unmarshal(definition, &t); err != nil {
		return "", fmt.Errorf("the definition of the tool cannot be read: %w", err)
	}
	return definitionHash(&t)
}

func definitionHash(t *mcp.Tool) (string, error) {
	given := t.Annotations
	if given == nil {
		given = &mcp.ToolAnnotations{}
	}
	annotations := map[string]any{"readOnlyHint": given.ReadOnlyHint, "idempotentHint": given.IdempotentHint}
	if given.Title != "" {
		annotations["title"] = given.Title
	}
	if given.DestructiveHint != nil {
		annotations["destructiveHint"] = *given.DestructiveHint
	}
	if given.OpenWorldHint != nil {
		annotations["openWorldHint"] = *given.OpenWorldHint
	}
	raw, err := json.Marshal(map[string]any{
		"name": t.Name, "description": t.Description, "inputSchema": t.InputSchema, "annotations": annotations,
	})
	if err != nil {
		return "", fmt.Errorf("the definition of the tool cannot be written: %w", err)
	}
	value := jsontext.Value(raw)
	if err := value.Canonicalize(); err != nil {
		return "", fmt.Errorf("the definition of the tool has no canonical form: %w", err)
	}
	sum := sha256.Sum256(value)
	return hex.EncodeToString(sum[:]), nil
}

// listing turns the definitions of one server into tools.
type listing struct {
	server  *server
	notices []Notice
	tools   []Tool
	// ungated are tools that nobody vouches for; changed those whose texts were cleaned.
	ungated, changed []string
}

// offer makes the tools that the agent wished for and may have.
func (l *listing) offer(definitions []*mcp.Tool, names map[string]string) {
	config := l.server.config
	for _, definition := range definitions {
		shown := names[definition.Name]
		if shown == "" {
			l.withhold(definition.Name, "its name stands for several tools")
			continue
		}
		if !l.server.wish.wants(definition.Name, shown) {
			continue
		}
		readOnly := definition.Annotations != nil && definition.Annotations.ReadOnlyHint
		if !readOnly && !slices.Contains(config.AllowedTools, definition.Name) {
			l.ungated = append(l.ungated, line(definition.Name))
			continue
		}
		hash := l.server.hashes[definition.Name]
		if pin, pinned := config.Pins[definition.Name]; pinned && pin != hash {
			l.withhold(definition.Name, "its definition differs from the pinned one; look at what changed and pin it again")
			continue
		}
		made, err := l.make(definition, shown, readOnly, hash)
		if err != nil {
			l.withhold(definition.Name, err.Error())
			continue
		}
		l.tools = append(l.tools, made)
	}
	l.summarise(definitions, names)
}

func (l *listing) withhold(name, why string) {
	l.notice("mcp-tool-withheld", "the tool %q of the MCP server %q is withheld: %s", line(name), l.server.config.Name, line(why))
}

func (l *listing) notice(code, format string, args ...any) {
	l.notices = append(l.notices, Notice{Code: code, Server: l.server.config.Name, Message: l.server.secrets.remove(fmt.Sprintf(format, args...))})
}

// summarise reports in one notice each what concerns many tools, and names that nothing stands behind.
func (l *listing) summarise(definitions []*mcp.Tool, names map[string]string) {
	server := l.server.config.Name
	if len(l.ungated) > 0 {
		l.notice("mcp-tool-withheld", "tools of the MCP server %q are withheld, since the server does not claim that they only read and they are not in allowedTools: %s",
			server, enumerate(l.ungated))
	}
	if len(l.changed) > 0 {
		l.notice("mcp-text-cleaned", "hidden characters were removed from, or long texts cut in, the definitions of tools of the MCP server %q: %s", server, enumerate(l.changed))
	}
	listed := func(name string) bool {
		return slices.ContainsFunc(definitions, func(t *mcp.Tool) bool {
			return t.Name == name || strings.HasSuffix(names[t.Name], "__"+name)
		})
	}
	var missing []string
	for _, name := range slices.Concat(l.server.wish.names, l.server.config.AllowedTools) {
		if !listed(name) && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		l.notice("mcp-tool-missing", "the MCP server %q has no tool of this name: %s", server, enumerate(missing))
	}
}

func enumerate(names []string) string {
	slices.Sort(names)
	if len(names) > 20 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:20], ", "), len(names)-20)
	}
	return strings.Join(names, ", ")
}

// make returns the tool for one definition.
func (l *listing) make(definition *mcp.Tool, shown string, readOnly bool, hash string) (Tool, error) {
	schema, form, err := fitSchema(definition.InputSchema)
	if err != nil {
		return Tool{}, err
	}
	schema = json.RawMessage(l.server.secrets.remove(string(schema)))
	description, changed := l.describe(definition)
	if changed || form.cleaned {
		l.changed = append(l.changed, shown)
	}
	if form.moved {
		l.notice("mcp-schema-changed", "patterns in the input schema of %s use a syntax that is not supported; they are told in words and not checked", shown)
	}
	srv := l.server
	target := target{name: definition.Name, hash: hash, repeatable: readOnly || definition.Annotations != nil && definition.Annotations.IdempotentHint}
	effect := tool.EffectExternal
	if readOnly {
		effect = tool.EffectRead
	}
	made, err := tool.Raw(tool.Declaration{
		Name: shown, Description: description, InputSchema: schema, Effect: effect,
		Boundary: tool.Boundary{Reads: "none", Writes: "none", Network: "the MCP server " + srv.config.Name + " at " + srv.origin,
			Processes: "none", Secrets: "the headers configured for this server, sent to it only"},
		CommandArguments: commandArguments(form.root),
	}, srv.runner(target))
	if err != nil {
		return Tool{}, err
	}
	return Tool{Tool: made, Server: srv.config.Name, Original: definition.Name, ReadOnly: readOnly, Hash: hash}, nil
}

// describe returns the description for the model, which says whose words it holds, and whether it had to be changed.
func (l *listing) describe(definition *mcp.Tool) (string, bool) {
	text := definition.Description
	if strings.TrimSpace(text) == "" {
		text = definition.Title
	}
	text, changed := clean(text)
	text = strings.TrimSpace(l.server.secrets.remove(text))
	if len(text) > maxDescription {
		text, changed = text[:border(text, maxDescription)]+"…", true
	}
	if text == "" {
		original, _ := clean(definition.Name)
		return fmt.Sprintf("The tool %q of the MCP server %q, which does not describe it.", original, l.server.config.Name), changed
	}
	return fmt.Sprintf("[MCP server %s] %s", l.server.config.Name, text), changed
}

// commandArguments names the argument that deny patterns are matched against, by the name that such arguments have
// everywhere.
func commandArguments(schema map[string]any) []string {
	properties, _ := schema["properties"].(map[string]any)
	command, _ := properties["command"].(map[string]any)
	if command["type"] == "string" {
		return []string{"command"}
	}
	return nil
}
