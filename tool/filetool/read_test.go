package filetool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/tool"
)

func TestRead(t *testing.T) {
	t.Parallel()
	numbered := func(n int) string {
		var b strings.Builder
		for i := 1; i <= n; i++ {
			fmt.Fprintf(&b, "line %d\n", i)
		}
		return b.String()
	}
	tests := []struct {
		name, content string
		args          args
		text          string
		from, to      int64
	}{
		{"whole file", "a\nb\n", nil, "a\nb\n", 1, 0},
		{"no line break at the end", "a\nb", nil, "a\nb", 1, 0},
		{"CRLF and byte order mark are kept", "\ufeffa\r\nb\r\n", nil, "\ufeffa\r\nb\r\n", 1, 0},
		{"a range", numbered(20), args{"offset": 10, "limit": 5},
			"line 10\nline 11\nline 12\nline 13\nline 14\n\n[Lines 10-14 of 20 lines. Continue with offset=15.]", 10, 14},
		{"a range up to the end", numbered(12), args{"offset": 10, "limit": 5}, "line 10\nline 11\nline 12\n", 10, 12},
		{"the rest of the file", numbered(12), args{"offset": 11}, "line 11\nline 12\n", 11, 0},
		{"a limit that just fits", numbered(2), args{"limit": 2}, "line 1\nline 2\n", 1, 2},
		{"no line after the last line break", "a\nb\n", args{"offset": 2}, "b\n", 2, 0},
		{"offset 0", "a\n", args{"offset": 0}, "a\n\n[offset 0 was taken as 1.]", 1, 0},
		{"negative limit", "a\nb\n", args{"limit": -3}, "a\n\n[limit -3 was taken as 1. Lines 1-1 of 2 lines. Continue with offset=2.]", 1, 1},
		{"numbers as text and with a fraction", "a\nb\nc\n", args{"offset": "2", "limit": 1.0},
			"b\n\n[Lines 2-2 of 3 lines. Continue with offset=3.]", 2, 2},
		{"empty file", "", nil, "[The file is empty.]", 1, 0},
		{"blank lines only", "\n\n", nil, "\n\n", 1, 0},
		{"old encoding", "na\xefve caf\xe9\n", nil,
			"naïve café\n\n[The file is not UTF-8: 2 bytes are shown as if they were Windows-1252.]", 1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.put(t, "src/f.txt", tt.content)
			a := args{"path": "src/f.txt"}
			for k, v := range tt.args {
				a[k] = v
			}
			got := d.call(t, newRead(), a)
			if got.IsError || strings.ReplaceAll(got.Text, "\n\n[", "\n[") != strings.ReplaceAll(tt.text, "\n\n[", "\n[") {
				t.Errorf("got %q (error %v), want %q", got.Text, got.IsError, tt.text)
			}
			want := []tool.SourceRead{{Path: "src/f.txt", From: tt.from, To: tt.to}}
			if diff := cmp.Diff(want, got.Reads); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadIsCutAt2000Lines(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "src/f", strings.Repeat("x\n", 5321))
	got := d.call(t, newRead(), args{"path": "src/f"})
	text, notice, _ := strings.Cut(got.Text, "\n\n[")
	if strings.Count(text, "x") != 2000 || notice != "Lines 1-2000 of 5321 lines. Continue with offset=2001.]" {
		t.Errorf("%d lines, notice %q", strings.Count(text, "x"), notice)
	}
}

func TestReadIsCutAt50KBOnWholeLines(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	line := strings.Repeat("😀", 25) + "\n" // 101 bytes, so that no line ends at the limit
	d.put(t, "src/f", strings.Repeat(line, 1000))
	got := d.call(t, newRead(), args{"path": "src/f"})
	text, notice, _ := strings.Cut(got.Text, "\n\n[")
	if want := strings.TrimSuffix(strings.Repeat(line, 51200/101), "\n"); text != want {
		t.Errorf("%d bytes shown, want %d", len(text), len(want))
	}
	if want := "Lines 1-506 of 1000 lines, cut at 50 KB. Continue with offset=507.]"; notice != want {
		t.Errorf("notice %q, want %q", notice, want)
	}
}

func TestReadPagesThroughAFileWithoutLossOrRepeat(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var all strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&all, "%d %s\n", i, strings.Repeat("é", i%50))
	}
	d.put(t, "src/f", all.String())
	var pages strings.Builder
	offset := int64(1)
	for range 20 {
		got := d.call(t, newRead(), args{"path": "src/f", "offset": offset})
		text, _, cut := strings.Cut(got.Text, "\n\n[")
		pages.WriteString(text)
		if !cut {
			break
		}
		pages.WriteByte('\n')
		offset = got.Reads[0].To + 1
	}
	if pages.String() != all.String() {
		t.Errorf("%d bytes in pages, %d in the file", pages.Len(), all.Len())
	}
}

func TestReadShowsTheBeginningOfALineThatIsTooLong(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "src/f", "short\n"+strings.Repeat("€", 100000)+"\nlast\n")
	got := d.call(t, newRead(), args{"path": "src/f", "offset": 2})
	text, notice, _ := strings.Cut(got.Text, "\n\n[")
	if len(text) > maxBytes || len(text) < maxBytes-3 || !utf8.ValidString(text) {
		t.Errorf("%d bytes shown, valid UTF-8: %v", len(text), utf8.ValidString(text))
	}
	if want := "Line 2 alone has 293.0 KB; this is its beginning. grep finds a place within it. The next line is offset=3.]"; notice != want {
		t.Errorf("notice %q, want %q", notice, want)
	}
}

func TestReadOffsetBeyondTheEndNamesTheNumberOfLines(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "src/f", "a\nb\n")
	got := d.call(t, newRead(), args{"path": "src/f", "offset": 3})
	if !got.IsError || !strings.Contains(got.Text, "2 lines") || got.Reads != nil {
		t.Errorf("got %+v", got)
	}
}

func TestReadDecodesUTF16(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("Grüße 😀\r\n", 10000)
	d := newDesk(t)
	little, big := []byte{0xff, 0xfe}, []byte{0xfe, 0xff}
	for _, c := range utf16.Encode([]rune(text)) {
		little = append(little, byte(c), byte(c>>8))
		big = append(big, byte(c>>8), byte(c))
	}
	for name, data := range map[string][]byte{"little": little, "big": big} {
		d.put(t, "src/"+name, string(data))
		got := d.call(t, newRead(), args{"path": "src/" + name, "limit": 2, "offset": 9000})
		if want := "Grüße 😀\r\nGrüße 😀\r\n\n[Lines 9000-9001 of 10000 lines. Continue with offset=9002. " +
			"The file is UTF-16 and is shown decoded; edit does not work on it.]"; !sameButBlank(got.Text, want) {
			t.Errorf("%s: got %q", name, got.Text)
		}
	}
}

func sameButBlank(a, b string) bool {
	return strings.Join(strings.Fields(a), " ") == strings.Join(strings.Fields(b), " ")
}

func TestReadDescribesBinaryFiles(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, content, says string }{
		{"NUL", "abc\x00def", "binary data"},
		{"NUL behind the head", strings.Repeat("text\n", 4000) + "\x00", "binary data"},
		{"no encoding at all", strings.Repeat("\x80\x91\xa2\xff", 50), "unknown encoding"},
		{"control characters", strings.Repeat("\x01\x02\x03abc", 50), "binary data"},
		{"PDF", "%PDF-1.7\n1 0 obj", "PDF"},
		{"gzip", "\x1f\x8b\x08\x00abc", "gzip"},
		{"BMP", "BM\x36\x00\x00\x00\x00\x00\x00\x00\x36" + strings.Repeat("\x11", 40), "BMP"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.put(t, "src/f.txt", tt.content)
			offset := 1
			if tt.name == "NUL behind the head" {
				offset = 3000
			}
			got := d.call(t, newRead(), args{"path": "src/f.txt", "offset": offset})
			if got.IsError || !strings.Contains(got.Text, tt.says) || !strings.HasPrefix(got.Text, "[This is no text") || got.Reads != nil {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func pictures(t *testing.T) map[string][]byte {
	t.Helper()
	m := image.NewPaletted(image.Rect(0, 0, 7, 5), color.Palette{color.White, color.Black})
	var p, j, g bytes.Buffer
	for _, err := range []error{png.Encode(&p, m), jpeg.Encode(&j, m, nil), gif.Encode(&g, m, nil)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	webp := append([]byte("RIFF\x16\x00\x00\x00WEBPVP8L\x0a\x00\x00\x00\x2f"), 6, 0, 1, 0, 0, 0, 0, 0, 0)
	return map[string][]byte{"image/png": p.Bytes(), "image/jpeg": j.Bytes(), "image/gif": g.Bytes(), "image/webp": webp}
}

func TestReadSendsImagesByTheirContentNotTheirName(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.env.Images = true
	for format, data := range pictures(t) {
		d.put(t, "src/picture.txt", string(data))
		got := d.call(t, newRead(), args{"path": "src/picture.txt"})
		if len(got.Images) != 1 || got.Images[0].MediaType != format || !bytes.Equal(got.Images[0].Data, data) {
			t.Errorf("%s: got %d images, text %q", format, len(got.Images), got.Text)
			continue
		}
		if !strings.Contains(got.Text, "7x5") {
			t.Errorf("%s: text %q does not name the size", format, got.Text)
		}
	}
	d.put(t, "src/text.png", "just text\n")
	if got := d.call(t, newRead(), args{"path": "src/text.png"}); got.Text != "just text\n" || got.Images != nil {
		t.Errorf("text named .png: got %+v", got)
	}
}

func TestReadDescribesImagesThatCannotBeSent(t *testing.T) {
	t.Parallel()
	all := pictures(t)
	tooBig := append(bytes.Clone(all["image/png"]), make([]byte, maxImageBytes)...)
	control := bytes.Index(all["image/png"], []byte("IDAT")) - 4
	animated := slices.Insert(bytes.Clone(all["image/png"]), control, []byte("\x00\x00\x00\x08acTL\x00\x00\x00\x02\x00\x00\x00\x00\xf3\x8d\x93\x70")...)
	tests := []struct {
		name   string
		data   []byte
		images bool
		says   string
	}{
		{"model without images", all["image/png"], false, "does not take images"},
		{"too large", tooBig, true, "larger than 3.4 MB"},
		{"cut PNG", all["image/png"][:50], true, "damaged"},
		{"cut JPEG", all["image/jpeg"][:200], true, "damaged"},
		{"cut GIF", all["image/gif"][:20], true, "damaged"},
		{"cut WebP", all["image/webp"][:28], true, "damaged"},
		{"animated PNG", animated, true, "animated"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.env.Images = tt.images
			d.put(t, "src/p", string(tt.data))
			got := d.call(t, newRead(), args{"path": "src/p"})
			if got.IsError || len(got.Images) != 0 || !strings.Contains(got.Text, tt.says) {
				t.Errorf("got %d images, %q", len(got.Images), got.Text)
			}
		})
	}
}

func TestReadStopsWhenItIsCancelledMidway(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f, err := os.Create(d.src + "/large")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(strings.Repeat("some text\n", 2000)); err != nil {
		t.Fatal(err)
	}
	file, err := d.env.Workspace.OpenFile("src/large")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ctx, cancel := context.WithCancel(t.Context())
	v := &view{first: 1, most: maxLines}
	// A source that cancels the call at the second block stands for a slow disk.
	text := newTextReader(file, nil)
	text.source = &cancelAfter{cancel: cancel, left: 2}
	if err := v.fill(ctx, text); err != context.Canceled {
		t.Errorf("got %v", err)
	}
}

type cancelAfter struct {
	cancel context.CancelFunc
	left   int
}

func (c *cancelAfter) Read(p []byte) (int, error) {
	if c.left--; c.left == 0 {
		c.cancel()
	}
	return copy(p, "endless\n"), nil
}

func TestNumbersOfAnySizeAreTaken(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]number{
		"7": 7, "-3": -3, "10.0": 10, "2.9": 2, "1e3": 1000, "1e30": math.MaxInt64, "-1e30": math.MinInt64, "1e400": math.MaxInt64,
		"9223372036854775808": math.MaxInt64,
	} {
		var got number
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: got %d, %v", text, got, err)
		}
	}
	var got number
	if err := json.Unmarshal([]byte(`"x"`), &got); err == nil {
		t.Error("a string was taken for a number")
	}
}

func TestWebPSizes(t *testing.T) {
	t.Parallel()
	chunk := func(kind, body string) []byte {
		return []byte("RIFF\x16\x00\x00\x00WEBP" + kind + "\x0a\x00\x00\x00" + body)
	}
	tests := []struct {
		name string
		data []byte
		want image.Point
	}{
		{"lossless", chunk("VP8L", "\x2f\x06\x00\x01\x00\x00\x00\x00\x00\x00"), image.Pt(7, 5)},
		{"lossy", chunk("VP8 ", "\x00\x00\x00\x9d\x01\x2a\x07\x00\x05\x00"), image.Pt(7, 5)},
		{"extended", chunk("VP8X", "\x00\x00\x00\x00\x06\x00\x00\x04\x00\x00"), image.Pt(7, 5)},
		{"lossy without its mark", chunk("VP8 ", "\x00\x00\x00\x9d\x01\x2b\x07\x00\x05\x00"), image.Point{}},
		{"lossless without its mark", chunk("VP8L", "\x2e\x06\x00\x01\x00\x00\x00\x00\x00\x00"), image.Point{}},
		{"unknown", chunk("ABCD", strings.Repeat("\x00", 10)), image.Point{}},
	}
	for _, tt := range tests {
		got, err := checkWebP(tt.data)
		if got != tt.want || (err != nil) != (tt.want == image.Point{}) {
			t.Errorf("%s: got %v, %v", tt.name, got, err)
		}
	}
}

func TestReadOfAGrowingFileHasAnEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "src/log", "one\ntwo\n")
	f, err := d.env.Workspace.OpenFile("src/log")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d.put(t, "src/log", "one\ntwo\nthree\n")
	got := readText(t.Context(), f, nil, readArguments{})
	if got.Text != "one\ntwo\n" {
		t.Errorf("got %q", got.Text)
	}
}

func TestReadDecodesRunesThatAreCutBetweenBlocks(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for shift := range 4 {
		line := strings.Repeat("x", shift) + strings.Repeat("😀é€", 9000)
		d.put(t, "src/f", line[:len(line)-1]+"\n"+"last\n")
		got := d.call(t, newRead(), args{"path": "src/f", "offset": 2})
		if !strings.HasPrefix(got.Text, "last\n") || !strings.Contains(got.Text, "not UTF-8: 2 bytes") {
			t.Errorf("shift %d: got %q", shift, got.Text)
		}
	}
}

func BenchmarkReadRange(b *testing.B) {
	d := newDesk(b)
	d.put(b, "src/f", strings.Repeat(strings.Repeat("x", 59)+"\n", 200000))
	tl := newRead()
	b.SetBytes(200000 * 60)
	b.ReportAllocs()
	for b.Loop() {
		if got := d.call(b, tl, args{"path": "src/f", "offset": 199000, "limit": 100}); got.IsError {
			b.Fatal(got.Text)
		}
	}
}
