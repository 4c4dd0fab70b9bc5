package tool

import (
	"context"
	"encoding/json"
	"fmt"
)

// Raw makes a tool whose declaration is known at run time only, such as one that a server lists. Its arguments arrive
// coerced and validated, as JSON. The name may hold A-Z, a-z, 0-9, _ and -, up to 64 bytes; that is wider than for tools
// of the kernel, so such a tool goes into the Set of one job and never into a Registry. Unlike New it returns what is
// wrong with the declaration, the input schema included, since that is not a fault of this program.
func Raw(d Declaration, run func(ctx context.Context, env *Env, arguments json.RawMessage) Result) (Tool, error) {
	t := Tool{Declaration: d, Run: run, compiled: &lazySchema{raw: d.InputSchema}}
	if !sharedName(d.Name) {
		return Tool{}, fmt.Errorf("tool %q: the name must match [A-Za-z0-9_-]+ and have at most 64 bytes", d.Name)
	}
	if err := t.checkBody(); err != nil {
		return Tool{}, err
	}
	if err := t.SchemaProblem(); err != nil {
		return Tool{}, fmt.Errorf("tool %q: input schema: %w", d.Name, err)
	}
	return t, nil
}

// sharedName reports whether every model service takes the name.
func sharedName(name string) bool {
	if name == "" || len(name) > 64 {
		return false
	}
	for _, c := range []byte(name) {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}
