package filetool

import (
	"bytes"
	"unicode/utf8"
)

// sniffImage returns the media type of the image that head begins, by its content alone, or "".
func sniffImage(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")) && len(head) > 3 && head[3] != 0xf7: // 0xf7 is JPEG-LS
		return "image/jpeg"
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		return "image/gif"
	case bytes.HasPrefix(head, []byte("RIFF")) && len(head) >= 16 && string(head[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}

// sniffBinary says in words what head begins if that is no text, or returns "". Text is UTF-8, UTF-16 with a byte order
// mark, or mostly ASCII in an older encoding.
func sniffBinary(head []byte) string {
	if bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff}) {
		return ""
	}
	if name := magicName(head); name != "" {
		return name
	}
	controls, invalid := 0, 0
	for rest := head; len(rest) > 0; {
		c, size := utf8.DecodeRune(rest)
		switch {
		case c == 0:
			return "binary data"
		case c == utf8.RuneError && size == 1:
			if utf8.FullRune(rest) {
				invalid++
			}
		case c < ' ' && !bytes.ContainsRune([]byte("\t\n\v\f\r\b\x1a\x1b"), c):
			controls++
		}
		rest = rest[size:]
	}
	if controls*20 > len(head) || invalid*4 > len(head) {
		return "binary data, or text in an unknown encoding"
	}
	return ""
}

// magicName names the common binary formats, for those that a NUL byte near the start would not betray as well.
func magicName(head []byte) string {
	for _, m := range []struct{ prefix, name string }{
		{"%PDF-", "a PDF document"},
		{"PK\x03\x04", "a ZIP archive, or a document or package in ZIP form"},
		{"\x1f\x8b", "gzip data"},
		{"BZh", "bzip2 data"},
		{"\xfd7zXZ\x00", "xz data"},
		{"\x28\xb5\x2f\xfd", "zstd data"},
		{"7z\xbc\xaf\x27\x1c", "a 7z archive"},
		{"\x7fELF", "an ELF program or library"},
		{"\xcf\xfa\xed\xfe", "a Mach-O program or library"},
		{"SQLite format 3\x00", "an SQLite database"},
		{"\xca\xfe\xba\xbe", "a Java class or a universal binary"},
		{"\x00asm", "a WebAssembly module"},
	} {
		if bytes.HasPrefix(head, []byte(m.prefix)) {
			return m.name
		}
	}
	if len(head) > 30 && head[0] == 'B' && head[1] == 'M' && bytes.Equal(head[6:10], make([]byte, 4)) {
		return "a BMP image, a format that is not shown"
	}
	return ""
}
