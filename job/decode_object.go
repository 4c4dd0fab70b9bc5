package job

import (
	"bytes"
	"reflect"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

func (d *decoder) mapping(v reflect.Value) bool {
	if _, ok := d.open(); !ok {
		return false
	}
	v.Set(reflect.MakeMap(v.Type()))
	ok := true
	for ok && d.dec.PeekKind() != '}' {
		var name member
		if name, ok = d.name(); !ok {
			break
		}
		key := reflect.ValueOf(name.text).Convert(v.Type().Key())
		if name.bad || v.MapIndex(key).IsValid() {
			ok = d.refuseMember(name)
			continue
		}
		element := reflect.New(v.Type().Elem()).Elem()
		d.push(step{name: name.text})
		ok = d.value(element)
		d.pop()
		v.SetMapIndex(key, element)
	}
	if !ok || !d.close() {
		d.partial[d.pointer()] = true
		return false
	}
	return true
}

// object decodes a struct. Fields that are absent because they were misspelt, or because the document broke off before
// them, are marked as broken, so that nobody calls them missing.
func (d *decoder) object(v reflect.Value) bool {
	fields := d.fieldsOf(v.Type())
	seen := make([]bool, len(fields.names))
	meant := make([]bool, len(fields.names))
	before := d.dec.InputOffset()
	ok := d.members(v, fields, seen, meant)
	for i, name := range fields.names {
		switch {
		case seen[i]:
		case !ok || meant[i]:
			d.breakAt(pointerTo(d.pointer(), name))
		case isPrice(v.Type()) && v.Field(fields.index[i]).Type() == reflect.TypeFor[llm.USD]():
			d.push(step{name: name})
			brace := before + int64(bytes.IndexByte(d.data[before:], '{'))
			d.add(brace, codeRequired, `"0" says that it is free`, "must be given: an amount that is absent would count as free")
			d.pop()
		}
	}
	return ok
}

// isPrice reports whether t is a price. Its amounts have no value that means absent, so that only the document can tell
// that one is missing.
func isPrice(t reflect.Type) bool {
	return t == reflect.TypeFor[llm.Price]() || t == reflect.TypeFor[llm.PriceTier]()
}

func (d *decoder) members(v reflect.Value, fields *structFields, seen, meant []bool) bool {
	if _, ok := d.open(); !ok {
		return false
	}
	for d.dec.PeekKind() != '}' {
		name, ok := d.name()
		if !ok {
			return false
		}
		at, known := fields.byName[name.text]
		switch {
		case !known && !name.bad:
			if at := d.unknownField(name, fields); at >= 0 {
				meant[at] = true
			}
			d.push(step{name: name.text})
			_, ok = d.skip()
			d.pop()
		case name.bad || seen[at]:
			ok = d.refuseMember(name)
		default:
			seen[at] = true
			d.push(step{name: name.text})
			ok = d.value(v.Field(fields.index[at]))
			d.pop()
		}
		if !ok {
			return false
		}
	}
	return d.close()
}

// unknownField reports a name that the object does not have. It returns the index of the field that was probably meant,
// -1 if there is none.
func (d *decoder) unknownField(name member, fields *structFields) int {
	d.push(step{name: name.text})
	defer d.pop()
	closest := problem.Closest(name.text, fields.names)
	switch {
	case closest == "":
		d.add(name.offset, codeUnknownField, "known fields: "+strings.Join(fields.names, ", "), "unknown field "+strconv.Quote(shorten(name.text)))
		return -1
	case strings.EqualFold(closest, name.text):
		d.add(name.offset, codeFieldCase, "write "+strconv.Quote(closest), "unknown field "+strconv.Quote(name.text)+"; names are case-sensitive")
	default:
		d.add(name.offset, codeUnknownField, "did you mean "+strconv.Quote(closest)+"?", "unknown field "+strconv.Quote(name.text))
	}
	return fields.byName[closest]
}

// refuseMember skips the value of a repeated or unusable name; an unusable one was reported where it was read.
func (d *decoder) refuseMember(name member) bool {
	if name.bad {
		_, ok := d.skip()
		return ok
	}
	d.push(step{name: name.text})
	defer d.pop()
	d.add(name.offset, codeDuplicateKey, "keep one of them", "the field "+strconv.Quote(shorten(name.text))+" is given twice")
	_, ok := d.skip()
	return ok
}

// structFields are the JSON fields of a struct in the order of their declaration.
type structFields struct {
	names  []string
	index  []int
	byName map[string]int
}

func (d *decoder) fieldsOf(t reflect.Type) *structFields {
	if known := d.fields[t]; known != nil {
		return known
	}
	fields := &structFields{byName: map[string]int{}}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		fields.byName[name] = len(fields.names)
		fields.names = append(fields.names, name)
		fields.index = append(fields.index, i)
	}
	d.fields[t] = fields
	return fields
}

// shorten cuts a name for a message.
func shorten(name string) string {
	if len(name) <= 64 {
		return name
	}
	return strings.ToValidUTF8(name[:64], "") + "…"
}
