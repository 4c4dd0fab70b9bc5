package telemetry

import (
	"encoding/binary"
	"math"
	"strings"
	"unicode/utf8"
)

// message is a protobuf message as it is written: fields are appended in wire format. Fields with the default value are
// left out, as protobuf does.
type message []byte

// The wire types of protobuf.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

func (m *message) tag(field, wire int) { *m = binary.AppendUvarint(*m, uint64(field<<3|wire)) }

func (m *message) varint(field int, v uint64) {
	if v != 0 {
		m.tag(field, wireVarint)
		*m = binary.AppendUvarint(*m, v)
	}
}

func (m *message) fixed64(field int, v uint64) {
	if v != 0 {
		m.tag(field, wireFixed64)
		*m = binary.LittleEndian.AppendUint64(*m, v)
	}
}

func (m *message) fixed32(field int, v uint32) {
	if v != 0 {
		m.tag(field, wireFixed32)
		*m = binary.LittleEndian.AppendUint32(*m, v)
	}
}

// always64 writes a fixed64 also if it is zero, for fields whose presence has a meaning.
func (m *message) always64(field int, v uint64) {
	m.tag(field, wireFixed64)
	*m = binary.LittleEndian.AppendUint64(*m, v)
}

// text writes a string field. Protobuf demands UTF-8, and a receiver refuses the whole request for one bad byte.
func (m *message) text(field int, v string) {
	if v == "" {
		return
	}
	if !utf8.ValidString(v) {
		v = strings.ToValidUTF8(v, "\uFFFD")
	}
	m.tag(field, wireBytes)
	*m = binary.AppendUvarint(*m, uint64(len(v)))
	*m = append(*m, v...)
}

// bytes writes a bytes field, or an embedded message that may be empty.
func (m *message) bytes(field int, v []byte) {
	m.tag(field, wireBytes)
	*m = binary.AppendUvarint(*m, uint64(len(v)))
	*m = append(*m, v...)
}

// doubles writes a packed field.
func (m *message) doubles(field int, values []float64) {
	m.tag(field, wireBytes)
	*m = binary.AppendUvarint(*m, uint64(8*len(values)))
	for _, v := range values {
		*m = binary.LittleEndian.AppendUint64(*m, math.Float64bits(v))
	}
}

// counts writes a packed field of fixed64.
func (m *message) counts(field int, values []uint64) {
	m.tag(field, wireBytes)
	*m = binary.AppendUvarint(*m, uint64(8*len(values)))
	for _, v := range values {
		*m = binary.LittleEndian.AppendUint64(*m, v)
	}
}

// eachField calls do with every field of a message from outside. Varints and embedded bytes are passed on, other fields
// are skipped. It reports whether the message was well formed.
func eachField(data []byte, do func(field int, number uint64, content []byte)) bool {
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		if n <= 0 {
			return false
		}
		data = data[n:]
		field, length := int(tag>>3), 0
		switch tag & 7 {
		case wireFixed64:
			length = 8
		case wireFixed32:
			length = 4
		case wireVarint:
			number, n := binary.Uvarint(data)
			if n <= 0 {
				return false
			}
			data = data[n:]
			do(field, number, nil)
			continue
		case wireBytes:
			size, n := binary.Uvarint(data)
			if n <= 0 || size > uint64(len(data)-n) {
				return false
			}
			do(field, 0, data[n:n+int(size)])
			data = data[n+int(size):]
			continue
		default:
			return false
		}
		if len(data) < length {
			return false
		}
		data = data[length:]
	}
	return true
}
