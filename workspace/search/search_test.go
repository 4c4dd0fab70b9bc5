package search_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/workspace/search"
)

func compile(t testing.TB, pattern string, o search.Options) *search.Pattern {
	t.Helper()
	p, err := search.Compile(pattern, o)
	if err != nil {
		t.Fatalf("Compile(%q): %v", pattern, err)
	}
	return p
}

func find(t testing.TB, p *search.Pattern, c search.Config, content string) search.Found {
	t.Helper()
	found, err := p.NewSearcher(c).Search(context.Background(), strings.NewReader(content))
	if err != nil {
		t.Fatalf("Search: %v", err)
	}
	return found
}

// numbers returns the numbers of the matching lines.
func numbers(f search.Found) []int64 {
	var list []int64
	for _, l := range f.Lines {
		if l.Match {
			list = append(list, l.Number)
		}
	}
	return list
}

// byRegexp is the oracle: package regexp, asked about each line.
func byRegexp(re *regexp.Regexp, keepCR bool, content string) []int64 {
	if content == "" {
		return nil
	}
	var list []int64
	for i, line := range strings.Split(strings.TrimSuffix(content, "\n"), "\n") {
		whole := i < strings.Count(content, "\n")
		if whole && !keepCR {
			line = strings.TrimSuffix(line, "\r")
		}
		if re.MatchString(line) {
			list = append(list, int64(i)+1)
		}
	}
	return list
}

// patterns exercise every way of searching: plain needles, sets of needles,
// needles in all cases, needles with a check of the line, and the automaton.
var patterns = []string{
	`foo`, `foo|bar`, `(panic|recover)\(`, `fo+`, `fo*`, `f(o|u)nc`, `colou?r`, `(a|b|c|d|e|f|g|h|i)x`, `[Tt]odo`, `[a-c]oo`, `func \w+Context\(`,
	`^foo`, `foo$`, `^foo$`, `^$`, `^`, `$`, `.`, `..`, `^.$`, `\bfoo\b`, `\Bfoo`, `foo\B`, `\b`, `\B`, `\A`, `\z`, `(?m)^foo$`, `(?s).o.`, `o\b.*\bf`,
	`(?i)foo`, `(?i)task`, `(?i)desk|lamp`, `(?i)ÉTÉ`, `(?i)s`, `(?i)k`, `(?i)^ſk$`, `(?i:foo)bar`, `foo(?i:bar)`, `(?i)İ`, `(?i)[a-c]x`, `[^a]`, `[^[:ascii:]]`,
	`\d{3}`, `[0-9]{2,4}-`, `[A-Z][a-z]+[0-9]{3,}`, `[a-z]+_[a-z]+_[a-z]+`, `(a|b|ab)*c(.*d){3}`, `(x+x+)+y`, `(?:a?){20}a{20}`, `.*.*.*=.*`,
	`é`, `日本`, `[à-ü]`, `\pL+`, `\p{Greek}`, `[^\x00-\x7f]`, `.é.`, `(日|本)語`, `\x{1F600}`, `\r`, `a\r`, `\s$`, `\S+\s+\S+`, `\t`, `|foo`, `foo|`, `()`, `(|)`, `a{0}`, `x*`,
	`(?i)k\b`, `\bé`, `é\b`, `(^|x)foo($|y)`, `^^foo$$`, `a$b`, `a^b`, `\w\W\w`, `foo.{0,5}bar`, `[[:word:]]+@[[:word:]]+\.com`, `(?U)a+b`, `\QA.B\E`, `\QA.B`,
}

// texts are lines that the patterns meet.
var texts = []string{
	"", "foo", "bar", "foobar", " foo ", "fooo", "f", "func", "fnc", "color colour", "hx", "Todo", "todo", "coo", "func NewContext(", "panic(1)", "recover()",
	"TASK", "taſk", "TaSK", "desK", "LAMP", "été ÉTÉ", "s", "ſ", "k", "K", "ſk", "SK", "FOObar", "fooBAR", "İ i", "Ax", "a", "aa", "\xff", "\xffé\xc3", "x\x80y",
	"123", "12-", "Abc1234", "a_b_c_d", "abcdd ddd", "abcdxdxd", "xxxxy", "xxxx", strings.Repeat("a", 30), "a = b == c", "é", "xéy", "日本語", "ü", "αβγ", "😀", "a\rb", "tab\there",
	"\r", "a\r", "foo\r", " \r", "foo bar baz", "o is f", "foo\tx", "user@example.com", "A.B", "aXb", "mañana", "foo..bar", "x foo", "xfooy", "e\u0301", "\u2028", "ba", "b a",
}

func TestMatchesEqualPackageRegexpLineByLine(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 7))
	var contents []string
	for _, end := range []string{"\n", "\r\n"} {
		all := strings.Join(texts, end)
		contents = append(contents, all, all+end, end+end+all)
	}
	for range 20 {
		var b strings.Builder
		for range rng.IntN(30) {
			b.WriteString(texts[rng.IntN(len(texts))])
			b.WriteString([]string{"\n", "\n", "\r\n", "", "\r"}[rng.IntN(5)])
		}
		contents = append(contents, b.String())
	}
	for _, pattern := range patterns {
		for _, ignoreCase := range []bool{false, true} {
			compareWithRegexp(t, pattern, ignoreCase, contents)
		}
	}
}

func compareWithRegexp(t testing.TB, pattern string, ignoreCase bool, contents []string) {
	t.Helper()
	p := compile(t, pattern, search.Options{IgnoreCase: ignoreCase})
	source := pattern
	if ignoreCase {
		source = "(?i)" + pattern
	}
	re := regexp.MustCompile(source)
	keepCR := strings.Contains(pattern, `\r`)
	s := p.NewSearcher(search.Config{})
	for _, content := range contents {
		found, err := s.Search(context.Background(), strings.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		if found.Binary || strings.HasPrefix(content, "\xff\xfe") || strings.HasPrefix(content, "\xfe\xff") {
			continue
		}
		want := byRegexp(re, keepCR, strings.TrimPrefix(content, "\ufeff"))
		if diff := cmp.Diff(want, numbers(found)); diff != "" {
			t.Errorf("pattern %q, ignore case %v, content %q: matching lines (-regexp +ours):\n%s", pattern, ignoreCase, content, diff)
		}
	}
}

// randomPattern builds a pattern from parts that often match.
func randomPattern(rng *rand.Rand, depth int) string {
	atoms := []string{"a", "b", "ab", "foo", "é", ".", "[ab]", "[^a]", `\w`, `\b`, "^", "$", `\s`, "s", "K", "[a-z]", `\B`, "日", "x", " "}
	if depth == 0 {
		return atoms[rng.IntN(len(atoms))]
	}
	sub := func() string { return randomPattern(rng, depth-1) }
	switch rng.IntN(7) {
	case 0:
		return "(" + sub() + "|" + sub() + ")"
	case 1:
		return "(?:" + sub() + ")" + []string{"*", "+", "?", "{2}", "{1,3}", "*?", "{0,2}"}[rng.IntN(7)]
	case 2:
		return "(?i:" + sub() + ")"
	default:
		return sub() + sub()
	}
}

func randomContent(rng *rand.Rand) string {
	parts := []string{"a", "b", "ab", "foo", "FOO", "é", "É", "ſ", "K", "k", "日", "x", " ", "\n", "\n", "\r\n", "\r", "\xff", "_"}
	var b strings.Builder
	for range rng.IntN(60) {
		b.WriteString(parts[rng.IntN(len(parts))])
	}
	return b.String()
}

func TestRandomPatternsEqualPackageRegexp(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(11, 13))
	for range 600 {
		pattern := randomPattern(rng, 1+rng.IntN(4))
		var contents []string
		for range 5 {
			contents = append(contents, randomContent(rng))
		}
		compareWithRegexp(t, pattern, rng.IntN(3) == 0, contents)
	}
}

func FuzzSearchEqualsRegexp(f *testing.F) {
	for i, pattern := range patterns {
		f.Add(pattern, strings.Join(texts[i%len(texts):], "\n"), i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, pattern, content string, ignoreCase bool) {
		_, err := regexp.Compile(pattern)
		if err != nil || len(pattern) > 200 || len(content) > 4000 {
			return
		}
		// Package regexp finds U+FFFD by its bytes at the start of a pattern
		// and by its meaning, an invalid byte, elsewhere.
		if strings.ContainsAny(pattern, "\r\n\uFFFD") || strings.Contains(pattern, `\`) && strings.ContainsAny(pattern, "rnx0123456789ac") {
			return
		}
		compareWithRegexp(t, pattern, ignoreCase, []string{content})
	})
}

func TestWindowBordersDoNotMatter(t *testing.T) {
	t.Parallel()
	// Lines of many lengths, so that window borders fall everywhere in a line.
	rng := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for b.Len() < 700<<10 {
		b.WriteString(strings.Repeat("-", rng.IntN(300)))
		b.WriteString([]string{"needle", "é日本", "x\ry", "other", "Needle 77"}[rng.IntN(5)])
		b.WriteString([]string{"\n", "\r\n"}[rng.IntN(2)])
	}
	content := b.String()
	for _, pattern := range []string{"needle", "(?i)needle", "é日本$", `^-+other$`, `[0-9]+$`, `日.$`, `\r`} {
		p := compile(t, pattern, search.Options{})
		want := byRegexp(regexp.MustCompile(pattern), pattern == `\r`, content)
		for name, r := range map[string]io.Reader{
			"whole":  strings.NewReader(content),
			"pieces": iotest.HalfReader(strings.NewReader(content)),
			"eof":    iotest.DataErrReader(strings.NewReader(content)),
		} {
			found, err := p.NewSearcher(search.Config{}).Search(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if got := numbers(found); !slices.Equal(want, got) {
				t.Errorf("pattern %q read %s: %d matching lines differ from the %d wanted", pattern, name, len(got), len(want))
			}
		}
	}
}

func TestLinesLongerThanTheBufferAreSearchedWhole(t *testing.T) {
	t.Parallel()
	filler := strings.Repeat("0123456789abcdé", 100_000) // 1.6 MB
	content := "first\n" + filler + "needle" + filler + "END\r\nsecond needle\n" + filler + "\nlast"
	for pattern, want := range map[string][]int64{
		"needle":         {2, 3},
		"^0.*needle":     {2},
		"END$":           {2},
		"^first$|^last$": {1, 5},
		"é$":             {4},
		"^é":             nil,
		"d0":             nil,
		`\bneedle\b`:     {3},
		"(?i)NEEDLE0123": {2},
	} {
		found := find(t, compile(t, pattern, search.Options{}), search.Config{Context: 1}, content)
		if diff := cmp.Diff(want, numbers(found)); diff != "" {
			t.Errorf("pattern %q (-want +got):\n%s", pattern, diff)
		}
		for _, l := range found.Lines {
			if n := utf8.RuneCountInString(l.Text); n > search.LineChars || !utf8.ValidString(l.Text) {
				t.Errorf("pattern %q, line %d: shown with %d characters", pattern, l.Number, n)
			}
		}
	}
}

func TestPatternsWithTooManyKindsOfCharactersStillWork(t *testing.T) {
	t.Parallel()
	var pattern strings.Builder
	for r := 'Ā'; r < 'Ā'+600; r += 2 {
		fmt.Fprintf(&pattern, "%c?", r)
	}
	pattern.WriteString("x$")
	found := find(t, compile(t, pattern.String(), search.Options{}), search.Config{}, "ax\nxa\nĀx\nx")
	if diff := cmp.Diff([]int64{1, 3, 4}, numbers(found)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPatternsThatNeedAHugeAutomatonStayCorrectAndBounded(t *testing.T) {
	t.Parallel()
	// Each line makes new states; the automaton has to empty its table and in
	// the end to give up.
	rng := rand.New(rand.NewPCG(4, 4))
	var b strings.Builder
	for range 300 {
		for range 100 {
			b.WriteByte("abcd "[rng.IntN(5)])
		}
		b.WriteByte('\n')
	}
	for _, pattern := range []string{`(a|b|ab)*c(.*d){30}`, `a.{60}b.{20}$`, `[ab].{12}c.{12}[cd]`} {
		compareWithRegexp(t, pattern, false, []string{b.String()})
	}
}

func TestContextIsShownOnceAndNumberedRight(t *testing.T) {
	t.Parallel()
	content := "1\n2\nm3\n4\n5\n6\nm7\nm8\n9\n10\n11\n12\n"
	got := render(find(t, compile(t, "m", search.Options{}), search.Config{Context: 2}, content))
	want := "1- 1|2- 2|3: m3|4- 4|5- 5|6- 6|7: m7|8: m8|9- 9|10- 10"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestContextCrossesWindows(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&b, "line %06d\n", i+1)
	}
	p := compile(t, "line ..[05]000$", search.Options{})
	for _, n := range []int{0, 1, 3} {
		found := find(t, p, search.Config{Context: n}, b.String())
		if len(found.Lines) != 20*(1+2*n)-n {
			t.Errorf("context %d: %d lines for 20 matches, the last of which ends the file", n, len(found.Lines))
		}
		for _, l := range found.Lines {
			if want := fmt.Sprintf("line %06d", l.Number); l.Text != want {
				t.Fatalf("context %d: line %d reads %q", n, l.Number, l.Text)
			}
		}
	}
}

func TestTrailingContextOfTheLastMatchIsKept(t *testing.T) {
	t.Parallel()
	found := find(t, compile(t, "m", search.Options{}), search.Config{Context: 2, MaxMatches: 2}, "m1\n2\nm3\nm4\n5\n6\nm7\n")
	if got, want := render(found), "1: m1|2- 2|3: m3|4- m4|5- 5"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if found.Matches != 2 {
		t.Errorf("Matches = %d, want 2", found.Matches)
	}
}

func render(f search.Found) string {
	var parts []string
	for _, l := range f.Lines {
		sign := "-"
		if l.Match {
			sign = ":"
		}
		parts = append(parts, fmt.Sprintf("%d%s %s", l.Number, sign, l.Text))
	}
	return strings.Join(parts, "|")
}

func TestLoneCarriageReturnsDoNotEndLines(t *testing.T) {
	t.Parallel()
	found := find(t, compile(t, "x", search.Options{}), search.Config{Context: 1}, "a\rb\rc\nx\r\rd\r\ne\rf\n")
	if got, want := render(found), "1- a\rb\rc|2: x\r\rd|3- e\rf"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBinaryFilesAreNotSearched(t *testing.T) {
	t.Parallel()
	p := compile(t, "text", search.Options{})
	if found := find(t, p, search.Config{}, "text\n\x00"); !found.Binary || found.Matches != 0 {
		t.Errorf("file with a NUL byte: %+v, want it to count as binary", found)
	}
	late := strings.Repeat("text\n", 4000) + "\x00"
	if found := find(t, p, search.Config{}, late); found.Binary || found.Matches != 4000 {
		t.Errorf("NUL byte far from the start: binary %v, %d matches", found.Binary, found.Matches)
	}
	// One read gives little; the decision must not depend on that.
	found, err := p.NewSearcher(search.Config{}).Search(t.Context(), iotest.OneByteReader(strings.NewReader("text\n\x00")))
	if err != nil || !found.Binary {
		t.Errorf("byte by byte: %+v, %v, want binary", found, err)
	}
}

func TestTextWithByteOrderMarksIsDecoded(t *testing.T) {
	t.Parallel()
	text := "first\r\nzweite Zeile: größer 😀\nthird"
	for name, encode := range map[string]func(string) []byte{
		"UTF-8":     func(s string) []byte { return append([]byte("\xef\xbb\xbf"), s...) },
		"UTF-16 LE": func(s string) []byte { return toUTF16(binary.LittleEndian, "\xff\xfe", s) },
		"UTF-16 BE": func(s string) []byte { return toUTF16(binary.BigEndian, "\xfe\xff", s) },
	} {
		for _, pattern := range []string{"^first$", "größer 😀$", "^third$", "(?i)ZWEITE"} {
			p := compile(t, pattern, search.Options{})
			found, err := p.NewSearcher(search.Config{}).Search(t.Context(), iotest.OneByteReader(bytes.NewReader(encode(text))))
			if err != nil || found.Matches != 1 {
				t.Errorf("%s, pattern %q: %+v, %v, want one match", name, pattern, found, err)
			}
		}
		big := find(t, compile(t, "größer", search.Options{}), search.Config{}, string(encode(strings.Repeat(text+"\n", 20_000))))
		if big.Matches != 20_000 {
			t.Errorf("%s: %d matches in a large file, want 20000", name, big.Matches)
		}
	}
}

func toUTF16(order binary.ByteOrder, mark, s string) []byte {
	out := []byte(mark)
	for _, u := range utf16.Encode([]rune(s)) {
		var pair [2]byte
		order.PutUint16(pair[:], u)
		out = append(out, pair[:]...)
	}
	return out
}

func TestLongTextIsCutAtARuneBorder(t *testing.T) {
	t.Parallel()
	found := find(t, compile(t, "x", search.Options{}), search.Config{}, "x"+strings.Repeat("😀", 1000)+"\nx\xff\xfe\n")
	first := found.Lines[0]
	if want := "x" + strings.Repeat("😀", search.LineChars-1); first.Text != want || !first.Cut {
		t.Errorf("line of 1001 characters shown with %d bytes, cut %v", len(first.Text), first.Cut)
	}
	if second := found.Lines[1]; !utf8.ValidString(second.Text) || second.Cut {
		t.Errorf("invalid bytes shown as %q, cut %v", second.Text, second.Cut)
	}
}

func TestMaxTextEndsTheSearch(t *testing.T) {
	t.Parallel()
	found := find(t, compile(t, "x", search.Options{}), search.Config{MaxText: 1000}, strings.Repeat("x 456789\n", 1_000_000))
	if !found.Full || found.Matches != 125 {
		t.Errorf("full %v after %d matches of 8 bytes, want to stop after 125", found.Full, found.Matches)
	}
}

func TestMemoryIsBoundedByTheWindowNotTheFile(t *testing.T) {
	// Not parallel: it measures allocations of the whole process.
	for name, line := range map[string]string{"lines": "some log line with context around\n", "one line": "some text without end "} {
		p := compile(t, `needle at the en.$`, search.Options{})
		s := p.NewSearcher(search.Config{Context: 2})
		file := io.MultiReader(&repeated{text: line, left: 24 << 20}, strings.NewReader("\nbefore\nneedle at the end\n"))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		found, err := s.Search(t.Context(), file)
		runtime.ReadMemStats(&after)
		if err != nil || found.Matches != 1 {
			t.Fatalf("%s: %+v, %v, want one match", name, found, err)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 4<<20 {
			t.Errorf("%s: %d bytes allocated for a file of 24 MB, want at most 4 MB", name, grown)
		}
	}
}

// repeated gives a text over and over.
type repeated struct {
	text string
	left int
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	n := 0
	for n < len(p) && r.left > 0 {
		c := copy(p[n:min(len(p), n+r.left)], r.text[r.at:])
		n += c
		r.left -= c
		r.at = (r.at + c) % len(r.text)
	}
	return n, nil
}

func TestCancelledSearchEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, text := range map[string]string{"lines": "line\n", "one line": "text "} {
		endless := &repeated{text: text, left: 1 << 62}
		_, err := compile(t, "needle|x$", search.Options{}).NewSearcher(search.Config{}).Search(ctx, endless)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: err = %v, want context.Canceled", name, err)
		}
	}
}

func TestReadErrorsAreReturnedWithWhatWasFound(t *testing.T) {
	t.Parallel()
	broken := io.MultiReader(strings.NewReader(strings.Repeat("x\n", 300_000)), iotest.ErrReader(errors.New("disk on fire")))
	found, err := compile(t, "x", search.Options{}).NewSearcher(search.Config{MaxText: 1 << 20}).Search(t.Context(), broken)
	if err == nil || !strings.Contains(err.Error(), "disk on fire") || found.Matches == 0 {
		t.Errorf("found %d matches, err %v, want both", found.Matches, err)
	}
}

func TestPatternErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		`foo(?=bar)`:                             "look-ahead",
		`foo(?!bar)`:                             "look-ahead",
		`(?<=foo)bar`:                            "look-behind",
		`(?<!foo)bar`:                            "look-behind",
		`(?>foo)`:                                "atomic",
		`(a)\1`:                                  "back-references",
		`foo(`:                                   "literal",
		`[z-a]`:                                  "literal",
		`a++`:                                    "possessive",
		`a{2000}`:                                "1000",
		`foo\nbar`:                               "within one line",
		"foo\nbar":                               "within one line",
		`*x`:                                     "literal",
		`(?P<n>a)(?P=n)`:                         "named group",
		strings.Repeat("a", search.MaxPattern+1): "at most 16384",
	} {
		_, err := search.Compile(pattern, search.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Compile(%.40q) = %v, want advice with %q", pattern, err, want)
		}
	}
}

func TestLiteralPatternsMeanThemselves(t *testing.T) {
	t.Parallel()
	content := "a.b(c)*\naXb(c)*\nA.B(C)*\n"
	found := find(t, compile(t, "a.b(c)*", search.Options{Literal: true}), search.Config{}, content)
	if diff := cmp.Diff([]int64{1}, numbers(found)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	found = find(t, compile(t, "a.b(c)*", search.Options{Literal: true, IgnoreCase: true}), search.Config{}, content)
	if diff := cmp.Diff([]int64{1, 3}, numbers(found)); diff != "" {
		t.Errorf("ignoring case (-want +got):\n%s", diff)
	}
	long := strings.Repeat("long needle ", 300)
	found = find(t, compile(t, long, search.Options{Literal: true}), search.Config{}, "x"+long+"\n"+long[:3000]+"\n")
	if diff := cmp.Diff([]int64{1}, numbers(found)); diff != "" {
		t.Errorf("long needle (-want +got):\n%s", diff)
	}
}
