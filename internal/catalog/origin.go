package catalog

import (
	"strings"

	"github.com/hozo-run/hozo/problem"
)

// origin is the place in a package from which a part of a job comes.
type origin struct {
	path string
	mark mark
}

// traceEntry keeps where the parts of an entry of x-subagents stand.
func (c *compiler) traceEntry(pointer, path string, v value) {
	c.origins[pointer] = origin{path, v.mark}
	for i, key := range v.keys {
		switch item := v.items[i]; key.text {
		case "name", "description":
			c.trace(pointer+"/"+key.text, path, item)
		case "loop":
			c.trace(pointer+"/loop", path, item)
		case "budget":
			c.trace(pointer+"/limits", path, item)
		}
	}
}

// trace keeps where v and everything in it stands.
func (c *compiler) trace(pointer, path string, v value) {
	c.origins[pointer] = origin{path, v.mark}
	for i, item := range v.items {
		c.trace(pointer+"/"+v.token(i), path, item)
	}
}

// Replaced forgets where a part of the job comes from: whoever runs it has put something else in its place.
func (j *Job) Replaced(pointer string) {
	for at := range j.origins {
		if at == pointer || strings.HasPrefix(at, pointer+"/") {
			delete(j.origins, at)
		}
	}
	j.origins[pointer] = origin{} // or the place of what is around it would be named
}

// Locate gives problems of a job the places in the package from which the faulty parts come. Those of other parts stay as
// they are.
func (j *Job) Locate(list problem.List) problem.List {
	placed := make(problem.List, len(list))
	for i, found := range list {
		for at := found.Pointer; at != ""; at = at[:max(strings.LastIndexByte(at, '/'), 0)] {
			if o, ok := j.origins[at]; ok {
				if found.Path == "" {
					found.Path, found.Line, found.Column = o.path, o.mark.line, o.mark.column
				}
				break
			}
		}
		placed[i] = found
	}
	return placed
}
