package llmtest

import (
	"encoding/binary"
	"hash/crc32"
	"maps"
	"slices"
)

// FrameStream is the media type of a stream of frames.
const FrameStream = "application/vnd.amazon.eventstream"

// Frame returns an event in the binary framing of AWS event streams.
func Frame(event, payload string) string {
	return RawFrame(map[string]string{":message-type": "event", ":event-type": event, ":content-type": "application/json"}, payload)
}

// ExceptionFrame returns a frame by which a service of AWS reports a fault.
func ExceptionFrame(exception, payload string) string {
	return RawFrame(map[string]string{":message-type": "exception", ":exception-type": exception, ":content-type": "application/json"}, payload)
}

// RawFrame returns a frame with these headers, all of them strings.
func RawFrame(headers map[string]string, payload string) string {
	const prelude, checksum, stringType = 12, 4, 7
	var head []byte
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		head = append(head, byte(len(name)))
		head = append(head, name...)
		head = append(head, stringType)
		head = binary.BigEndian.AppendUint16(head, uint16(len(headers[name])))
		head = append(head, headers[name]...)
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(prelude+len(head)+len(payload)+checksum))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(head)))
	frame = binary.BigEndian.AppendUint32(frame, crc32.ChecksumIEEE(frame))
	frame = append(append(frame, head...), payload...)
	return string(binary.BigEndian.AppendUint32(frame, crc32.ChecksumIEEE(frame)))
}
