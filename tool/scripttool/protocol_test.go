package scripttool

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

// FuzzProtocol feeds the parent's reader what a child in foreign hands could say. Each message that passes has one
// meaning, and the reading ends.
func FuzzProtocol(f *testing.F) {
	for _, seed := range []string{
		`{"call":{"id":1,"tool":"read","arguments":{"path":"a"}}}` + "\n" + `{"console":{"text":"x"}}` + "\n" + `{"end":{"text":"1","bytes":1}}` + "\n",
		`{"end":{"failure":{"kind":"script","message":"m","line":3}}}` + "\n",
		"\n", "null\n", "{}\n", "[1]\n", `{"call":null,"end":{}}`, `{"call":{"arguments":[]}}` + "\n", "\x00\xff\n", `{"end":{"bytes":1e99}}` + "\n",
		`{"call":{"id":1,"arguments":   {}},"call":{"id":2}}` + "\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		r := newReader(bytes.NewReader(said))
		for range bytes.Count(said, []byte{'\n'}) + 1 {
			m, err := r.next()
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, errBroken) {
					t.Fatalf("an error of neither sort: %v", err)
				}
				return
			}
			if m.Call != nil && (m.Console != nil || m.End != nil || !json.Valid(m.Call.Arguments)) || m.Console != nil && m.End != nil {
				t.Fatalf("a message with several meanings: %+v", m)
			}
		}
		t.Fatal("the reading does not end")
	})
}

func TestLinesAreBounded(t *testing.T) {
	t.Parallel()
	line := func(n int) string { return `{"console":{"text":"` + strings.Repeat("x", n) + `"}}` + "\n" }
	if _, err := newReader(strings.NewReader(line(maxLine - 100))).next(); err != nil {
		t.Errorf("a long line: %v", err)
	}
	if _, err := newReader(strings.NewReader(line(maxLine))).next(); !errors.Is(err, errBroken) {
		t.Errorf("a line that is too long: %v", err)
	}
}
