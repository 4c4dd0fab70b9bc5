package textcall

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// maxSchemaDepth bounds how far arguments are compared with their schema.
const maxSchemaDepth = 16

// settle turns a wish for a known tool into a call.
func settle(w wish, t *offered, work *meter) Call {
	call := Call{Name: t.name, ID: w.id}
	args, err := w.args, w.err
	if w.unnamed != nil {
		args, err = nameIt(*w.unnamed, t)
	}
	if err == nil && w.given && args.kind == kindString {
		args, err = reread(args.text, work, &call)
	}
	switch {
	case err != nil:
	case !w.given && t.demands():
		err = errors.New("the call holds no arguments, and this tool needs some")
	case !w.given || args.kind == kindNull && !t.demands():
		args = emptyObject()
	case args.kind != kindObject:
		err = errNoObject
	}
	if err != nil {
		call.ArgumentsError, call.RawArguments = err.Error(), w.source
		return call
	}
	call.Arguments = json.RawMessage(convert(args, t.schema, w.texts, work, 0).raw())
	return call
}

// nameIt gives the one value of a Python call the name of the tool's one property.
func nameIt(v value, t *offered) (value, error) {
	name := t.single()
	if name == "" {
		return value{}, errors.New("the arguments have no names; write name=value for each")
	}
	args := emptyObject()
	args.set(name, v)
	return args, nil
}

// reread reads arguments that came as JSON inside a string.
func reread(text string, work *meter, call *Call) (value, error) {
	if strings.TrimSpace(text) == "" {
		return emptyObject(), nil
	}
	r := reader{text: text, work: work}
	v, err := r.value()
	if err == nil && r.peek() != 0 {
		return v, errNoObject
	}
	call.repaired = call.repaired || r.repaired
	return v, err
}

// convert bends a value towards its schema as far as that loses nothing: text that is a number, a truth value, a list or
// an object becomes one only where the schema takes no string. texts says that the value was written without any sign of
// its type.
func convert(v, schema value, texts bool, work *meter, depth int) value {
	if depth > maxSchemaDepth {
		return v
	}
	want := types(schema, 0)
	switch {
	case v.kind == kindString && len(want) > 0 && !slices.Contains(want, "string"):
		return retype(v, want, work)
	case (v.kind == kindNumber || v.kind == kindBool) && len(want) == 1 && want[0] == "string":
		return stringValue(v.text)
	case v.kind == kindArray:
		items, _ := schema.member("items")
		v.items = slices.Clone(v.items)
		for i := range v.items {
			v.items[i] = convert(v.items[i], items, texts, work, depth+1)
		}
	case v.kind == kindObject:
		v.items = slices.Clone(v.items)
		for i := range v.items {
			of, required := property(schema, v.keys[i])
			if texts && !required && v.items[i].kind == kindString && v.items[i].text == "null" {
				v.items[i] = value{}
				continue
			}
			v.items[i] = convert(v.items[i], of, texts, work, depth+1)
		}
	}
	return v
}

// retype reads text as one of the types, and returns it unchanged if it is none of them.
func retype(v value, want []string, work *meter) value {
	text := strings.TrimSpace(v.text)
	number, whole := numeral(text)
	switch {
	case whole && slices.Contains(want, "integer"), number && slices.Contains(want, "number"):
		return value{kind: kindNumber, text: text}
	case slices.Contains(want, "boolean") && (strings.EqualFold(text, "true") || strings.EqualFold(text, "false")):
		return value{kind: kindBool, text: strings.ToLower(text)}
	case slices.Contains(want, "null") && (text == "null" || text == "None"):
		return value{}
	}
	for _, nested := range [][2]string{{"array", "["}, {"object", "{"}} {
		if !slices.Contains(want, nested[0]) || !strings.HasPrefix(text, nested[1]) {
			continue
		}
		r := reader{text: text, work: work, python: true}
		if read, err := r.value(); err == nil && r.pos == len(text) && !r.repaired {
			return read
		}
	}
	return v
}

// types returns the JSON types that a schema names, in itself or in its alternatives; none means that it takes any.
func types(schema value, depth int) []string {
	if depth > maxSchemaDepth {
		return nil
	}
	var found []string
	named, _ := schema.member("type")
	for _, t := range append(slices.Clone(named.items), named) {
		if t.kind == kindString {
			found = append(found, t.text)
		}
	}
	for _, list := range []string{"anyOf", "oneOf"} {
		alternatives, _ := schema.member(list)
		for _, a := range alternatives.items {
			of := types(a, depth+1)
			if len(of) == 0 {
				return nil
			}
			found = append(found, of...)
		}
	}
	return found
}
