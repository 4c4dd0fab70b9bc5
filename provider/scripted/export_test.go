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

// LimitSteps lowers the steps that the templates of one request may take, for tests of that wall.
func (s *Script) LimitSteps(n int) { s.maxTicks = n }
