package scripted

import (
	"maps"
	"slices"
)

// FunctionNames returns the names that a template may use, without those that the fence puts in.
func FunctionNames() []string {
	names := slices.Sorted(maps.Keys(allFunctions()))
	return slices.DeleteFunc(names, func(name string) bool { return name == "tick" || name == "show" })
}
