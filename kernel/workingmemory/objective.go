package workingmemory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hozo-run/hozo/llm"
)

const objectiveArgument = "objective"

const objectiveDescription = "What this call is to find out or to achieve, in one sentence. It is recorded with the step."

// ErrNoObjective is the error of a call that does not say what it is for.
var ErrNoObjective = errors.New(`the argument "objective" is missing: say in one sentence what this call is for`)

// Intent is a tool as the loop offers it: each call has to state its objective. The zero value stands for a tool of which
// nothing is known.
type Intent struct {
	// Spec is the declaration for the model, with the objective among its required arguments.
	Spec llm.ToolSpec
	// argument is the name of the argument that holds the objective.
	argument string
	// own says that the tool itself has the argument, so that it stays among those that the tool gets.
	own bool
}

// Require returns a tool whose input schema requires a string argument "objective" beside the tool's own. A tool that has
// such an argument of its own, as subagents do, keeps it, and it is required; where that argument is something else than a
// string, the objective is called "step_objective". The order of the other properties does not change. The error says that
// the input schema is no JSON object.
func Require(spec llm.ToolSpec) (Intent, error) {
	schema, err := members(spec.InputSchema)
	if err != nil {
		return Intent{}, fmt.Errorf("tool %q: the input schema is no JSON object: %w", spec.Name, err)
	}
	properties, err := members(or(value(schema, "properties"), "{}"))
	if err != nil {
		return Intent{}, fmt.Errorf("tool %q: the properties of the input schema are no JSON object: %w", spec.Name, err)
	}
	var required []string
	if err := json.Unmarshal(or(value(schema, "required"), "[]"), &required); err != nil {
		return Intent{}, fmt.Errorf("tool %q: the required properties of the input schema are no list of names: %w", spec.Name, err)
	}
	i := Intent{Spec: spec, argument: objectiveArgument}
	if own := value(properties, objectiveArgument); own != nil {
		if i.own = isString(own); !i.own {
			i.argument = "step_" + objectiveArgument
		}
	}
	if !i.own {
		declared := member{i.argument, encode(map[string]string{"type": "string", "description": objectiveDescription})}
		properties = append([]member{declared}, properties...)
	}
	names := []string{i.argument}
	for _, name := range required {
		if name != i.argument {
			names = append(names, name)
		}
	}
	schema = set(set(schema, "properties", object(properties)), "required", encode(names))
	i.Spec.InputSchema = object(schema)
	return i, nil
}

// Split takes the arguments of a call apart: the objective, and the arguments for the tool, whose bytes and order are the
// model's. It returns ErrNoObjective, with the arguments for the tool, if there is no objective or if it is blank, and
// another error if the arguments are no JSON object.
func (i Intent) Split(arguments json.RawMessage) (objective string, rest json.RawMessage, err error) {
	all, err := members(arguments)
	if err != nil {
		return "", nil, fmt.Errorf("the arguments are no JSON object: %w", err)
	}
	if i.argument == "" {
		i.argument = objectiveArgument
	}
	rest = arguments
	raw := value(all, i.argument)
	if raw != nil && !i.own {
		kept := all[:0:0]
		for _, m := range all {
			if m.name != i.argument {
				kept = append(kept, m)
			}
		}
		rest = object(kept)
	}
	if json.Unmarshal(raw, &objective) != nil || strings.TrimSpace(objective) == "" {
		return "", rest, ErrNoObjective
	}
	return strings.TrimSpace(objective), rest, nil
}

// member is one member of a JSON object; a list of them keeps the order that maps lose.
type member struct {
	name  string
	value json.RawMessage
}

// members reads a JSON object.
func members(text json.RawMessage) ([]member, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	open, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	if open != json.Delim('{') {
		return nil, errors.New("it begins with something else than {")
	}
	all := []member{}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return nil, err
		}
		text, _ := name.(string) // the decoder refuses other keys
		all = append(all, member{text, raw})
	}
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows it")
	}
	return all, nil
}

// object writes members as a JSON object.
func object(all []member) json.RawMessage {
	text := []byte{'{'}
	for i, m := range all {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(text, encode(m.name)...), ':')
		text = append(text, m.value...)
	}
	return append(text, '}')
}

func value(all []member, name string) json.RawMessage {
	for _, m := range all {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

func set(all []member, name string, text json.RawMessage) []member {
	for i, m := range all {
		if m.name == name {
			all[i].value = text
			return all
		}
	}
	return append(all, member{name, text})
}

func or(text json.RawMessage, otherwise string) json.RawMessage {
	if text == nil {
		return json.RawMessage(otherwise)
	}
	return text
}

// isString reports whether a schema takes strings and nothing else.
func isString(schema json.RawMessage) bool {
	var node struct {
		Type any `json:"type"`
	}
	return json.Unmarshal(schema, &node) == nil && node.Type == "string"
}

// encode writes a value that JSON can hold, without escapes for HTML.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(err) // only strings, numbers and lists of them come here
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
