package telemetry

import (
	"math"
	"unicode/utf8"
)

// The numbers below are the field numbers of opentelemetry-proto 1.x (resource.proto, common.proto, trace.proto,
// metrics.proto and the two collector services), which are stable.

// scopeName is the instrumentation scope of everything exported.
const scopeName = "github.com/hozo-run/hozo/telemetry"

const (
	// maxText bounds names and words that come from outside; maxContent bounds a piece of content.
	maxText    = 256
	maxContent = 32 << 10
)

// attributes are encoded pairs, each a whole attribute of the enclosing message under the field number that it was made
// with.
type attributes struct {
	field   int
	encoded message
}

func (a *attributes) add(key string, value message) {
	var pair message
	pair.text(1, key)
	pair.bytes(2, value)
	a.encoded.bytes(a.field, pair)
}

// text adds a string; an empty one is left out.
func (a *attributes) text(key, value string) { a.long(key, cut(value, maxText)) }

// long adds a string that was bounded by the caller.
func (a *attributes) long(key, value string) {
	if value == "" {
		return
	}
	var v message
	v.text(1, value)
	a.add(key, v)
}

func (a *attributes) texts(key string, values ...string) {
	var array message
	for _, value := range values {
		if value != "" {
			var v message
			v.text(1, cut(value, maxText))
			array.bytes(1, v)
		}
	}
	if len(array) > 0 {
		var v message
		v.bytes(5, array)
		a.add(key, v)
	}
}

func (a *attributes) bool(key string, value bool) {
	v := message{2<<3 | wireVarint, 0}
	if value {
		v[1] = 1
	}
	a.add(key, v)
}

func (a *attributes) int(key string, value int64) {
	v := message{3<<3 | wireVarint, 0}
	if value != 0 {
		v = nil
		v.varint(3, uint64(value))
	}
	a.add(key, v)
}

// float adds a number; one that is not finite is left out.
func (a *attributes) float(key string, value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	var v message
	v.always64(4, math.Float64bits(value))
	a.add(key, v)
}

// cut returns at most limit bytes of text, ending at a rune border.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// pair is an attribute of the resource.
type pair struct{ key, value string }

func encodeResource(pairs []pair) []byte {
	a := attributes{field: 1}
	for _, p := range pairs {
		a.long(p.key, p.value)
	}
	return a.encoded
}

// Kinds of spans.
const (
	kindInternal = 1
	kindClient   = 3
)

// statusError is the status code of a span that failed; success has none.
const statusError = 2

// span is a settled span on its way out.
type span struct {
	id, parent spanID
	name       string
	kind       uint64
	// start and end are Unix times in nanoseconds.
	start, end int64
	// failure is the error.type of a span that failed, "" for success.
	failure    string
	attributes attributes
}

// encode returns the span as message of trace.proto.
func (s *span) encode(t Trace) []byte {
	m := make(message, 0, 160+len(s.name)+len(s.attributes.encoded))
	m.bytes(1, t.id[:])
	m.bytes(2, s.id[:])
	if s.parent != (spanID{}) {
		m.bytes(4, s.parent[:])
	}
	m.text(5, s.name)
	m.varint(6, s.kind)
	m.fixed64(7, uint64(max(s.start, 0)))
	m.fixed64(8, uint64(max(s.end, s.start, 0)))
	m = append(m, s.attributes.encoded...)
	if s.failure != "" {
		var status message
		status.text(2, cut(s.failure, maxText))
		status.varint(3, statusError)
		m.bytes(15, status)
	}
	m.fixed32(16, uint32(t.flags()))
	return m
}

// envelope is the request of either service: one resource with one scope, whose items stand under field 2.
func envelope(resource, scope []byte, schemaURL string, items [][]byte) []byte {
	var inner message
	inner.bytes(1, scope)
	for _, item := range items {
		inner.bytes(2, item)
	}
	inner.text(3, schemaURL)
	var outer message
	outer.bytes(1, resource)
	outer.bytes(2, inner)
	var request message
	request.bytes(1, outer)
	return request
}

// rejected returns how many items the answer to a request says it did not take, and why.
func rejected(answer []byte) (n int64, why string) {
	eachField(answer, func(field int, _ uint64, content []byte) {
		if field != 1 {
			return
		}
		eachField(content, func(field int, number uint64, content []byte) {
			switch field {
			case 1:
				n = int64(number)
			case 2:
				why = cut(string(content), maxText)
			}
		})
	})
	return n, why
}
