// Package workflow holds work that somebody prepared, to be started by its name: a command is the text of a task with
// places for arguments, a script is JavaScript that a task tells an agent to run, and a workflow is a sequence of runs of
// which later ones get what earlier ones left. The files are read strictly, with every problem at once, and say nothing
// about which agents exist: a step that names a missing one fails when its turn comes, and not before.
//
// A Runner takes a workflow through its steps. It starts no job itself but asks a Starter, and writes its position to the
// database before each step, so that another process can go on from there; a step is started under a key that makes the
// second start the first one.
package workflow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// The limits of a file.
const (
	// MaxFile counts bytes, MaxSteps and MaxArguments entries.
	MaxFile      = 256 << 10
	MaxSteps     = 64
	MaxArguments = 32
	// MaxValue counts the bytes of one argument.
	MaxValue = 64 << 10
)

// The codes of problems, beside those of the package catalog.
const (
	CodeRequired           = "required"
	CodeInvalid            = "invalid"
	CodeDuplicate          = "duplicate"
	CodePlaceholderUnknown = "placeholder-unknown"
	CodeArgumentUnknown    = "argument-unknown"
	CodeScriptUnknown      = "script-unknown"
	CodeStepUnknown        = "step-unknown"
)

// Argument is a place in a text that whoever starts it fills.
type Argument struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Default fills the place where nothing is given; an argument without one is required.
	Default *string `json:"default,omitempty"`
}

// Model names the model of a step.
type Model struct {
	Provider string    `json:"provider"`
	ID       string    `json:"id"`
	Thinking llm.Level `json:"thinking,omitempty"`
}

// Script is JavaScript for the tool codemode.
type Script struct {
	Name string `json:"name"`
	Code string `json:"code"`
}

// file is a file while it is read: its parts are decoded key by key, so that all problems are found.
type file struct {
	doc      *catalog.Document
	problems problem.List
}

func newFile(doc *catalog.Document) *file { return &file{doc: doc} }

func (f *file) add(code, pointer, hint, format string, args ...any) {
	f.problems = append(f.problems, f.doc.Problem(code, pointer, fmt.Sprintf(format, args...), hint))
}

// members splits an object at the pointer into its members and reports those that are not known.
func (f *file) members(pointer string, data json.RawMessage, known ...string) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil || members == nil {
		f.add(catalog.CodeValueType, pointer, "write one key: value per line", "must be a mapping")
		return map[string]json.RawMessage{}
	}
	for name := range members {
		if !slices.Contains(known, name) {
			hint := "known keys: " + strings.Join(known, ", ")
			if near := problem.Closest(name, known); near != "" {
				hint = "did you mean " + near + "?"
			}
			f.add(catalog.CodeKeyUnknown, pointer+"/"+token(name), hint, "unknown key %q", name)
		}
	}
	return members
}

// token escapes a key for a JSON Pointer.
func token(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

// text decodes a member that is text. A required one must be there and must not be empty.
func (f *file) text(members map[string]json.RawMessage, pointer, key string, required bool) string {
	data, there := members[key]
	at := pointer + "/" + key
	var text string
	switch {
	case !there && required:
		f.add(CodeRequired, pointer, "add "+key+": …", "the key %s is missing", key)
	case !there:
	case json.Unmarshal(data, &text) != nil || string(data) == "null":
		f.add(catalog.CodeValueType, at, "put it in quotes", "%s must be text", key)
	case required && strings.TrimSpace(text) == "":
		f.add(CodeRequired, at, "", "%s is empty", key)
	}
	return text
}

// name decodes a required member that is a name.
func (f *file) name(members map[string]json.RawMessage, pointer, key string) string {
	text := f.text(members, pointer, key, true)
	if text != "" && !catalog.ValidName(text) {
		f.add(catalog.CodeNameInvalid, pointer+"/"+key, "a name begins with a letter a-z and goes on with a-z, 0-9 or -, at most 64 characters", "invalid name %q", text)
	}
	return text
}

// list splits a list at the pointer.
func (f *file) list(members map[string]json.RawMessage, pointer, key string, most int) []json.RawMessage {
	data, there := members[key]
	if !there {
		return nil
	}
	var items []json.RawMessage
	switch at := pointer + "/" + key; {
	case json.Unmarshal(data, &items) != nil || items == nil:
		f.add(catalog.CodeValueType, at, "write one entry per line, each after -", "%s must be a list", key)
	case len(items) > most:
		f.add(CodeInvalid, at, "", "%s has %d entries; at most %d are allowed", key, len(items), most)
		return nil
	}
	return items
}

// names decodes a list of different names.
func (f *file) names(members map[string]json.RawMessage, pointer, key string, most int) []string {
	var names []string
	for i, item := range f.list(members, pointer, key, most) {
		at := pointer + "/" + key + "/" + strconv.Itoa(i)
		var name string
		switch {
		case json.Unmarshal(item, &name) != nil || name == "":
			f.add(catalog.CodeValueType, at, "", "must be text")
		case slices.Contains(names, name):
			f.add(CodeDuplicate, at, "", "%q is listed twice", name)
		}
		names = append(names, name)
	}
	return names
}

// arguments decodes the list of arguments.
func (f *file) arguments(members map[string]json.RawMessage) []Argument {
	var arguments []Argument
	for i, item := range f.list(members, "", "arguments", MaxArguments) {
		at := "/arguments/" + strconv.Itoa(i)
		m := f.members(at, item, "name", "description", "default")
		a := Argument{Name: f.name(m, at, "name"), Description: f.text(m, at, "description", true)}
		if _, there := m["default"]; there {
			text := f.text(m, at, "default", false)
			a.Default = &text
		}
		if slices.ContainsFunc(arguments, func(other Argument) bool { return other.Name == a.Name }) {
			f.add(CodeDuplicate, at+"/name", "", "the argument %q is listed twice", a.Name)
		}
		arguments = append(arguments, a)
	}
	return arguments
}

// base checks that the file is named after what it holds.
func (f *file) base(path, ending, name string) {
	stem := strings.TrimSuffix(path[strings.LastIndexByte(path, '/')+1:], ending)
	if name != "" && catalog.ValidName(name) && stem != name {
		f.add(catalog.CodeNameMismatch, "/name", "rename the file to "+name+ending+", or write name: "+stem, "the name %q differs from the file's base name %q", name, stem)
	}
}

// fill returns the value of each argument, or every problem with what is given.
func fill(arguments []Argument, given map[string]string) (map[string]string, problem.List) {
	var problems problem.List
	known, values := []string{}, make(map[string]string)
	for _, a := range arguments {
		known = append(known, a.Name)
		value, ok := given[a.Name]
		switch {
		case !ok && a.Default != nil:
			value = *a.Default
		case !ok:
			problems.AddHint(CodeRequired, "/arguments/"+a.Name, a.Description, "the argument %q is required", a.Name)
		case len(value) > MaxValue:
			problems.Add(CodeInvalid, "/arguments/"+a.Name, "the argument %q has %d bytes; at most %d are allowed", a.Name, len(value), MaxValue)
		}
		values[a.Name] = value
	}
	for name := range given {
		if !slices.Contains(known, name) {
			hint := "there are none"
			if len(known) > 0 {
				hint = "known arguments: " + strings.Join(known, ", ")
			}
			problems.AddHint(CodeArgumentUnknown, "/arguments/"+token(name), hint, "unknown argument %q", name)
		}
	}
	slices.SortFunc(problems, func(a, b problem.Problem) int { return strings.Compare(a.Pointer, b.Pointer) })
	return values, problems
}
