package hosttool_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/hozo-run/hozo/tool/hosttool"
)

// ledger is a text as a job reads it.
const ledger = `# Accounts

The margin of the northern branch fell to eleven percent in March, because the supplier
raised its prices twice; the board has not been told.

| account | holder           |
|---------|------------------|
| 4111 1111 1111 1111 2222 3333 4444 5555 6666 7777 | A. N. Other |

deploy_token = "hz-9f8e7d6c5b4a39281706-XyZ"

支店の利益率は三月に十一パーセントまで下がった。取締役会にはまだ知らされていない。
`

// read is a job that has read texts.
func read(texts ...string) *hosttool.Leaks {
	l := &hosttool.Leaks{}
	for _, text := range texts {
		l.Note(text)
	}
	return l
}

// query returns the arguments of a search.
func query(text string) json.RawMessage {
	arguments, err := json.Marshal(map[string]any{"query": text, "count": 5})
	if err != nil {
		panic(err)
	}
	return arguments
}

const quote = "northern branch fell to eleven percent in March, because"

func TestArgumentsThatQuoteAreRefused(t *testing.T) {
	t.Parallel()
	l := read(ledger)
	for name, arguments := range map[string]json.RawMessage{
		"a sentence":                    query("The margin of the northern branch fell to eleven percent"),
		"inside of other words":         query("please look up whether " + quote + " is usual in trade"),
		"across a line break":           query("because the supplier raised its prices twice"),
		"other case":                    query(strings.ToUpper(quote)),
		"other punctuation":             query(strings.ReplaceAll(quote, " ", "...")),
		"without spaces":                query(strings.ReplaceAll(quote, " ", "")),
		"letters set apart":             query(strings.Join(strings.Split(quote, ""), " ")),
		"invisible characters":          query(strings.Join(strings.Split(quote, ""), "\u200b")),
		"wide letters":                  query(wide(quote)),
		"numbers":                       query("4111111111111111222233334444555566667777"),
		"a key":                         query("what is hz-9f8e7d6c5b4a39281706-xyz good for"),
		"signs without spaces":          query("利益率は三月に十一パーセントまで下がった"),
		"in a URL":                      json.RawMessage(`{"url":"https://example.com/?d=` + url.QueryEscape(quote) + `"}`),
		"percent escapes":               json.RawMessage(`{"url":"https://example.com/` + escapeAll(quote) + `"}`),
		"twice escaped":                 query(url.QueryEscape(escapeAll(quote))),
		"base64":                        query(b64(quote)),
		"base64 for URLs":               query("https://example.com/?d=" + base64.RawURLEncoding.EncodeToString([]byte(quote))),
		"base64 after a path":           query("https://example.com/abc/" + b64(quote)),
		"base64 in lines":               query(b64(quote)[:20] + "\n" + b64(quote)[20:]),
		"base64 of base64":              query(b64(b64(quote))),
		"base64 of a key":               query(b64("hz-9f8e7d6c5b4a39281706-XyZ")),
		"hexadecimal":                   query(hex.EncodeToString([]byte(quote))),
		"hexadecimal with colons":       query(colons(hex.EncodeToString([]byte(quote)))),
		"hexadecimal, one digit before": query("0" + strings.ToUpper(hex.EncodeToString([]byte(quote)))),
		"divided among values":          json.RawMessage(`{"domains":["` + quote[:20] + `","` + quote[20:] + `"]}`),
		"in a nested value":             json.RawMessage(`{"filter":{"any":[1,{"text":"` + quote + `"}]}}`),
		"as a key of an object":         json.RawMessage(`{"filter":{"` + quote + `":true}}`),
		"in escapes of JSON":            json.RawMessage(`{"query":"` + jsonEscapes(quote) + `"}`),
	} {
		if why := l.Quotes(arguments); !strings.Contains(why, "repeat content that this job has read") {
			t.Errorf("%s: %s may leave: %q", name, arguments, why)
		}
	}
}

func wide(text string) string {
	return strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f {
			return r + 0xfee0
		}
		return r
	}, text)
}

func escapeAll(text string) string {
	var b strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&b, "%%%02x", text[i])
	}
	return b.String()
}

func colons(digits string) string {
	var pairs []string
	for i := 0; i < len(digits); i += 2 {
		pairs = append(pairs, digits[i:i+2])
	}
	return strings.Join(pairs, ":")
}

func jsonEscapes(text string) string {
	var b strings.Builder
	for _, r := range text {
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String()
}

func TestArgumentsInOwnWordsMayLeave(t *testing.T) {
	t.Parallel()
	l := read(ledger, "Use the Kubernetes ingress controller (nginx) of the Go SDK at github.com/modelcontextprotocol.")
	for _, text := range []string{
		"", "margin of a branch", "why do margins fall when suppliers raise prices", "eleven percent margin in retail March",
		"kubernetes ingress controller nginx", "northern branch", "4111 1111 1111 1111", "deploy_token", "hz-9f8e7d6c5b4a39281706-XyW",
		"https://pkg.go.dev/github.com/google/go-cmp/cmp", "利益率 三月", strings.Repeat("a ", 2000),
		base64.StdEncoding.EncodeToString([]byte("something else entirely, of the same length as a quote")),
	} {
		if why := l.Quotes(query(text)); why != "" {
			t.Errorf("%q: %s", text, why)
		}
	}
	for name, arguments := range map[string]string{"broken": `{"query":`, "long": `{"query":"` + strings.Repeat("a ", 40<<10) + `"}`} {
		if why := l.Quotes(json.RawMessage(arguments)); !strings.Contains(why, "compared") {
			t.Errorf("%s arguments may leave unread: %q", name, why)
		}
	}
	if why := (&hosttool.Leaks{}).Quotes(query(ledger)); why != "" {
		t.Errorf("a job that has read nothing: %s", why)
	}
}

func TestARefusalShowsWhereTheQuoteBegins(t *testing.T) {
	t.Parallel()
	why := read(ledger).Quotes(query("tell me: " + quote))
	if !strings.Contains(why, `from "`) || !strings.Contains(why, "eleven percent") {
		t.Error(why)
	}
}

// TestEveryQuoteOfFortyIsFoundAndNoneBelow33 takes quotes of every length from every place.
func TestEveryQuoteOfFortyIsFoundAndNoneBelow33(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	letters := make([]byte, 400)
	for i := range letters {
		letters[i] = byte('a' + random.IntN(26))
	}
	text := string(letters)
	l := read(text)
	for from := range len(text) - 80 {
		for _, length := range []int{10, 32, 40, 41, 60} {
			found := l.Quotes(query("0 "+text[from:from+length]+" 0")) != ""
			if found != (length >= 40) {
				t.Fatalf("%d letters from %d: found %v", length, from, found)
			}
		}
	}
}

func TestTextsAreNotJoined(t *testing.T) {
	t.Parallel()
	l := read(quote[:25], quote[25:])
	if why := l.Quotes(query(quote)); why != "" {
		t.Error(why)
	}
}

func TestAJobThatReadsMoreThanCanBeKeptSendsShortArgumentsOnly(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	page := func() string {
		letters := make([]byte, 64<<10)
		for i := range letters {
			letters[i] = byte('a' + random.IntN(26))
		}
		return string(letters)
	}
	before := heap()
	l := read(ledger)
	for range 104 { // nearly seven million letters
		l.Note(page())
	}
	if grown := heap() - before; grown > 9<<20 {
		t.Errorf("%d bytes are kept", grown)
	}
	if why := l.Quotes(query("why do margins fall in the spring")); why != "" {
		t.Errorf("a short query: %s", why)
	}
	if why := l.Quotes(query("a long query in words that nobody has written before, about nothing at all")); !strings.Contains(why, "more than can be compared") {
		t.Errorf("a long query may leave: %q", why)
	}
	if why := l.Quotes(query(quote)); !strings.Contains(why, "repeat content") {
		t.Errorf("what was read first is forgotten: %q", why)
	}
	runtime.KeepAlive(l)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestReadingTheSameAgainTakesNoMemory(t *testing.T) {
	l := read(ledger)
	before := heap()
	for range 2000 {
		l.Note(ledger)
	}
	if grown := heap() - before; grown > 64<<10 {
		t.Errorf("%d bytes more are kept", grown)
	}
	runtime.KeepAlive(l)
}

func TestLeaksMayBeUsedByManyCallsAtOnce(t *testing.T) {
	t.Parallel()
	l := read(ledger)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for n := range 50 {
				l.Note(fmt.Sprintf("page %d of %d: %s", n, i, strings.Repeat("something to read ", 20)))
				if l.Quotes(query(quote)) == "" {
					t.Error("a quote may leave")
				}
			}
		})
	}
	group.Wait()
}

// FuzzLeaks checks against the definition: every forty letters and digits of a text are a quote.
func FuzzLeaks(f *testing.F) {
	f.Add(ledger, 7, 60)
	f.Add("ẞİıſKelvin\u212a 支店の利益率は三月に 12 %41%zz \xff\xfe aGVsbG8", 0, 100)
	f.Add(strings.Repeat("ab", 100), 3, 50)
	f.Fuzz(func(t *testing.T, text string, from, length int) {
		if len(text) > 4<<10 || from < 0 || length < 0 || from > len(text) || length > len(text)-from {
			return
		}
		l := read(text)
		part := strings.ToValidUTF8(text[from:from+length], " ")
		why := l.Quotes(query(part))
		letters := 0
		for _, r := range part {
			if r != unicode.ReplacementChar && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
				letters++
			}
		}
		if letters >= 40 && why == "" {
			t.Errorf("%q of %q may leave", part, text)
		}
	})
}

// TestArgumentsThatDecodeToMuchAreCompared sends what takes the most work.
func TestArgumentsThatDecodeToMuchAreCompared(t *testing.T) {
	t.Parallel()
	l := read(ledger)
	for name, text := range map[string]string{
		"digits": strings.Repeat("3", 64000), "percents": strings.Repeat("%41", 21000), "short runs": strings.Repeat("0123456789012345678901234567890123456789,", 1500),
		"encoded four times": b64(b64(b64(b64(strings.Repeat("x y z ", 3300))))),
	} {
		if why := l.Quotes(query(text)); why != "" {
			t.Errorf("%s: %s", name, why)
		}
	}
}

func b64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func BenchmarkNote(b *testing.B) {
	text := strings.Repeat(ledger, 80) // about 64 KiB
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		read(text)
	}
}

func BenchmarkQuotes(b *testing.B) {
	l := read(ledger)
	arguments := query(strings.Repeat("why do margins fall when suppliers raise prices ", 8))
	b.ReportAllocs()
	for b.Loop() {
		if why := l.Quotes(arguments); why != "" {
			b.Fatal(why)
		}
	}
}
