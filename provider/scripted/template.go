package scripted

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"
)

// Templates are those of text/template with walls around them: the data has no methods and the builtin "call" is off, so
// that nothing but the functions of this package can run; every loop body and every snippet first spends one of
// maxTicks, so that no template runs for ever; and no text or list that a function makes, and no output, grows beyond
// its limit. The walls are put up by rewriting the parsed tree: see fence.
const (
	maxTicks = 1_000_000
	maxText  = 4 << 20
	maxList  = 200_000
)

// newTemplates returns an empty set that knows every function. Those that look at an exchange fail here: a scene binds
// the real ones to its own copy of the set.
func newTemplates() *template.Template {
	return template.New("script").Option("missingkey=error").Funcs(allFunctions())
}

// allFunctions is what templates may name, made once for all scripts.
var allFunctions = sync.OnceValue(func() template.FuncMap {
	functions := maps.Clone(plainFunctions())
	for name := range (&scene{}).functions() {
		functions[name] = func(...any) (string, error) { return "", errors.New("used outside of a response") }
	}
	return functions
})

// builtins names the functions of text/template that stay; the others are replaced by ours or refused.
func builtins() map[string]any {
	return map[string]any{
		"and": 0, "or": 0, "not": 0, "len": 0, "index": 0, "slice": 0,
		"eq": 0, "ne": 0, "lt": 0, "le": 0, "gt": 0, "ge": 0,
	}
}

// compile adds one template to a set under a name.
func compile(set *template.Template, name, source string) error {
	trees, err := parse.Parse(name, source, "", "", allFunctions(), builtins())
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "template: "))
	}
	for other := range trees {
		if other != name {
			return fmt.Errorf("template %q is defined inside another; write it under snippets", other)
		}
	}
	tree := trees[name]
	fence(tree.Root, true)
	_, err = set.AddParseTree(name, tree)
	return err
}

// fence rewrites a list of nodes: loops and (at the top) whole templates begin with "tick", and every value that is
// printed goes through "show".
func fence(list *parse.ListNode, ticking bool) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 {
				n.Pipe.Cmds = append(n.Pipe.Cmds, command("show").Cmds...)
			}
		case *parse.IfNode:
			fence(n.List, false)
			fence(n.ElseList, false)
		case *parse.WithNode:
			fence(n.List, false)
			fence(n.ElseList, false)
		case *parse.RangeNode:
			fence(n.List, true)
			fence(n.ElseList, false)
		}
	}
	if ticking {
		action := &parse.ActionNode{NodeType: parse.NodeAction, Pos: list.Pos, Pipe: command("tick")}
		list.Nodes = slices.Insert(list.Nodes, 0, parse.Node(action))
	}
}

// command returns a pipeline that calls "tick" or "show" without arguments.
func command(name string) *parse.PipeNode { return commands()[name].CopyPipe() }

var commands = sync.OnceValue(func() map[string]*parse.PipeNode {
	made := make(map[string]*parse.PipeNode)
	for _, name := range []string{"tick", "show"} {
		trees, err := parse.Parse(name, "{{"+name+"}}", "", "", allFunctions())
		if err != nil {
			panic(err) // both names are known
		}
		if action, ok := trees[name].Root.Nodes[0].(*parse.ActionNode); ok {
			made[name] = action.Pipe
		}
	}
	return made
})

// checkIncludes reports templates that include a snippet that does not exist, and snippets that include themselves.
func checkIncludes(set *template.Template) []string {
	includes := make(map[string][]string)
	for _, t := range set.Templates() {
		includes[t.Name()] = included(t.Root, nil)
	}
	var wrong []string
	for _, from := range slices.Sorted(maps.Keys(includes)) {
		for _, name := range includes[from] {
			if _, ok := includes[name]; !ok || strings.HasPrefix(name, "/") {
				wrong = append(wrong, fmt.Sprintf("%s: there is no snippet %q", from, name))
			}
		}
		if reaches(includes, from, from, make(map[string]bool)) {
			wrong = append(wrong, fmt.Sprintf("snippet %q includes itself", from))
		}
	}
	return slices.Compact(wrong)
}

// reaches reports whether including from leads to target; seen holds the names it has been through.
func reaches(includes map[string][]string, from, target string, seen map[string]bool) bool {
	for _, name := range includes[from] {
		if name == target {
			return true
		}
		if !seen[name] {
			seen[name] = true
			if reaches(includes, name, target, seen) {
				return true
			}
		}
	}
	return false
}

// included appends the names of the templates that the nodes of a list include.
func included(list *parse.ListNode, names []string) []string {
	if list == nil {
		return names
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.TemplateNode:
			names = append(names, n.Name)
		case *parse.IfNode:
			names = included(n.ElseList, included(n.List, names))
		case *parse.WithNode:
			names = included(n.ElseList, included(n.List, names))
		case *parse.RangeNode:
			names = included(n.ElseList, included(n.List, names))
		}
	}
	return names
}

// output is where a template writes; it refuses to grow beyond maxText.
type output struct{ data []byte }

func (o *output) Write(p []byte) (int, error) {
	if len(o.data)+len(p) > maxText {
		return 0, errTooLong
	}
	o.data = append(o.data, p...)
	return len(p), nil
}

var errTooLong = fmt.Errorf("the text is longer than %d bytes", maxText)
