package job

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hozo-run/hozo/problem"
)

// decoder fills Go values from one JSON document and goes on after a fault, so that one pass finds them all. Values of the
// wrong kind are skipped and remembered as broken: what depends on them is not judged. Only a fault that hides where the
// next value starts, or a document beyond its limits, ends the pass.
//
// Its methods return false when the pass has ended.
type decoder struct {
	data   []byte
	dec    *jsontext.Decoder
	path   []step
	tokens int
	found  []placed
	// broken holds the pointers of values that did not decode: they and everything below them are unknown.
	broken map[string]bool
	// touched holds the pointers above the broken ones.
	touched map[string]bool
	// partial holds the pointers of lists and maps that were cut off: what they held up to there is known.
	partial map[string]bool
	fields  map[reflect.Type]*structFields
}

// step is one step of a JSON Pointer: a name, or an index if name is empty and inList is set.
type step struct {
	name   string
	index  int
	inList bool
}

func newDecoder(data []byte) *decoder {
	return &decoder{
		data:    data,
		broken:  map[string]bool{},
		touched: map[string]bool{},
		partial: map[string]bool{},
		fields:  map[reflect.Type]*structFields{},
	}
}

// document decodes the whole text into target, a pointer to a struct.
func (d *decoder) document(target any) {
	if rest, ok := bytes.CutPrefix(d.data, []byte("\xef\xbb\xbf")); ok {
		d.add(0, codeEncoding, "save the document as UTF-8 without one", "the document begins with a byte order mark")
		d.data = rest
	}
	if bytes.HasPrefix(d.data, []byte("\xff\xfe")) || bytes.HasPrefix(d.data, []byte("\xfe\xff")) {
		d.fail(0, codeEncoding, "save the document as UTF-8", "the document is UTF-16")
		return
	}
	d.dec = jsontext.NewDecoder(bytes.NewBuffer(d.data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if !d.value(reflect.ValueOf(target).Elem()) {
		return
	}
	at := int(d.dec.InputOffset())
	rest := bytes.TrimLeft(d.data[at:], " \t\r\n")
	if len(rest) > 0 {
		d.add(int64(len(d.data)-len(rest)), codeTrailingData, "one document holds one job", "more text follows the end of the document")
		d.found[len(d.found)-1].inText = true
	}
}

// faulty reports whether nothing can be said about the value at pointer, because it or what holds it did not decode.
func (d *decoder) faulty(pointer string) bool {
	if d.partial[pointer] {
		return true
	}
	for len(d.broken) > 0 {
		if d.broken[pointer] {
			return true
		}
		cut := strings.LastIndexByte(pointer, '/')
		if cut < 0 {
			return false
		}
		pointer = pointer[:cut]
	}
	return false
}

// pointer renders the place of the value that is being decoded.
func (d *decoder) pointer() string {
	pointer := ""
	for _, s := range d.path {
		if s.inList {
			pointer += "/" + strconv.Itoa(s.index)
		} else {
			pointer = pointerTo(pointer, s.name)
		}
	}
	return pointer
}

func (d *decoder) push(s step) { d.path = append(d.path, s) }
func (d *decoder) pop()        { d.path = d.path[:len(d.path)-1] }

// add records a problem of the current place. The pass ends at the next value when there are too many.
func (d *decoder) add(offset int64, code, hint, message string) {
	d.found = append(d.found, placed{
		Problem: problem.Problem{Code: code, Pointer: d.pointer(), Message: message, Hint: hint},
		offset:  offset,
	})
}

// fail records a problem of the current value and marks it as broken.
func (d *decoder) fail(offset int64, code, hint, message string) {
	d.add(offset, code, hint, message)
	d.breakAt(d.pointer())
}

// breakAt marks a value as unknown.
func (d *decoder) breakAt(pointer string) {
	d.broken[pointer] = true
	for cut := strings.LastIndexByte(pointer, '/'); cut >= 0; cut = strings.LastIndexByte(pointer, '/') {
		pointer = pointer[:cut]
		d.touched[pointer] = true
	}
}

// faultyWithin reports whether the value at pointer or a part of it did not decode.
func (d *decoder) faultyWithin(pointer string) bool { return d.touched[pointer] || d.faulty(pointer) }

var rawMessageType = reflect.TypeFor[json.RawMessage]()

// value decodes the next value into v.
func (d *decoder) value(v reflect.Value) bool {
	kind := d.dec.PeekKind()
	if v.Type() == rawMessageType {
		return d.raw(v)
	}
	if v.Kind() == reflect.Pointer && kind != 'n' {
		v.Set(reflect.New(v.Type().Elem()))
		return d.value(v.Elem())
	}
	if custom, ok := v.Addr().Interface().(json.Unmarshaler); ok && kind != 'n' {
		return d.custom(custom)
	}
	switch want := wantedKind(v.Type()); {
	case want != kind && !(want == 't' && kind == 'f'):
		return d.wrongKind(v.Type(), kind)
	case kind == '"':
		return d.text(v)
	case kind == '0':
		return d.number(v)
	case kind == '{' && v.Kind() == reflect.Map:
		return d.mapping(v)
	case kind == '{':
		return d.object(v)
	case kind == '[':
		return d.slice(v)
	}
	_, ok := d.scalarValue()
	v.SetBool(kind == 't')
	return ok
}

// wantedKind returns the kind of JSON value that a Go type decodes from.
func wantedKind(t reflect.Type) jsontext.Kind {
	switch t.Kind() {
	case reflect.Bool:
		return 't'
	case reflect.Int64, reflect.Float64:
		return '0'
	case reflect.String:
		return '"'
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return '"'
		}
		return '['
	case reflect.Struct, reflect.Map:
		return '{'
	case reflect.Pointer:
		return wantedKind(t.Elem())
	}
	panic("job: no JSON form for Go type " + t.String())
}

func kindName(kind jsontext.Kind) string {
	switch kind {
	case 'n':
		return "null"
	case 't', 'f':
		return "true or false"
	case '0':
		return "a number"
	case '"':
		return "a string"
	case '[':
		return "a list"
	}
	return "an object"
}

// wrongKind reports and skips a value of another kind than t takes. The value itself may be a credential and is not shown.
func (d *decoder) wrongKind(t reflect.Type, kind jsontext.Kind) bool {
	hint := ""
	if kind == 'n' {
		hint = "null is no value: leave a field out that you do not want to set"
	}
	start, ok := d.skip()
	if !ok {
		d.breakAt(d.pointer())
		return false
	}
	d.fail(start, codeWrongType, hint, "must be "+kindName(wantedKind(t))+", not "+kindName(kind))
	return true
}

// text decodes a string, or bytes in base64.
func (d *decoder) text(v reflect.Value) bool {
	raw, ok := d.scalarValue()
	if !ok || !d.checkText(raw) {
		return ok
	}
	text, _ := jsontext.AppendUnquote(nil, raw) // checked above
	if v.Kind() == reflect.String {
		v.SetString(string(text))
		return true
	}
	decoded, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil {
		d.fail(d.start(raw), codeInvalid, "use the standard alphabet with padding", "must be base64")
		return true
	}
	v.SetBytes(decoded)
	return true
}

func (d *decoder) number(v reflect.Value) bool {
	raw, ok := d.scalarValue()
	if !ok || !d.checkNumber(raw) {
		return ok
	}
	if v.Kind() == reflect.Float64 {
		f, _ := strconv.ParseFloat(string(raw), 64) // checked above
		v.SetFloat(f)
		return true
	}
	n, whole := wholeNumber(string(raw))
	switch {
	case !whole:
		d.fail(d.start(raw), codeWrongType, "", "must be a whole number")
	case n > maxInteger || n < -maxInteger:
		d.fail(d.start(raw), codeOutOfRange, "", "must be a whole number within ±9007199254740991")
	default:
		v.SetInt(n)
	}
	return true
}

// custom decodes a value whose type reads its own JSON.
func (d *decoder) custom(v json.Unmarshaler) bool {
	kind := d.dec.PeekKind()
	if kind != '0' && kind != '"' {
		return d.wrongKind(reflect.TypeOf(v).Elem(), kind)
	}
	raw, ok := d.scalarValue()
	if !ok || kind == '"' && !d.checkText(raw) || kind == '0' && !d.checkNumber(raw) {
		return ok
	}
	if err := v.UnmarshalJSON(raw); err != nil {
		d.fail(d.start(raw), codeInvalid, "", err.Error())
	}
	return true
}

func (d *decoder) slice(v reflect.Value) bool {
	if _, ok := d.open(); !ok {
		return false
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	ok := true
	for i := 0; ok && d.dec.PeekKind() != ']'; i++ {
		v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		d.push(step{index: i, inList: true})
		ok = d.value(v.Index(i))
		d.pop()
	}
	if !ok || !d.close() {
		d.partial[d.pointer()] = true
		return false
	}
	return true
}
