package workingmemory_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/kernel/workingmemory"
	"github.com/hozo-run/hozo/problem"
)

const task = "List the spring concerts in Basel.\n\nNames, dates and sources."

// page returns the text of a document.
func page(objective, plan, findings, reasoning, coverage string) string {
	return "## Objective\n\n" + objective + "\n\n## Plan / TODO\n\n" + plan + "\n\n## Findings\n\n" + findings +
		"\n\n## Reasoning & progress\n\n" + reasoning + "\n\n## Coverage & confidence\n\n" + coverage + "\n"
}

const (
	plan     = "- [x] search\n- [ ] check dates"
	findings = "- Concert A on 2026-05-03, 120 people, 42.5 % sold, https://example.com/a?id=7 (id EV-2071)"
	reason   = "- step 1: searched, one hit"
	coverage = "Coverage: 40 %\nConfidence: 0.6"
)

// old returns a document that a writer made.
func old(t *testing.T) workingmemory.Document {
	t.Helper()
	return mustRevise(t, workingmemory.New(task), page(task, plan, findings, reason, coverage))
}

func mustRevise(t *testing.T, from workingmemory.Document, answer string) workingmemory.Document {
	t.Helper()
	r := workingmemory.Revise(from, answer, 8000)
	if len(r.Problems) > 0 {
		t.Fatalf("the document is refused: %v", r.Problems)
	}
	return r.Document
}

func codes(problems problem.List) []string {
	var all []string
	for _, p := range problems {
		all = append(all, p.Code)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestReviseFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := page(task, plan, findings, reason, coverage)
	for name, c := range map[string]struct {
		answer string
		want   []string
		says   string
	}{
		"nothing wrong":          {good, nil, ""},
		"empty":                  {" \n\t\n", []string{"empty"}, "the answer is empty"},
		"only a fence":           {"```\n```", []string{"empty"}, ""},
		"heading dropped":        {strings.Replace(good, "## Reasoning & progress\n", "", 1), []string{"heading"}, `"## Reasoning & progress" is missing`},
		"first heading dropped":  {strings.Replace(good, "## Objective\n", "", 1), []string{"heading"}, `"## Objective" is missing`},
		"heading twice":          {good + "\n## Findings\n\n- again\n", []string{"heading"}, "stands there 2 times"},
		"headings out of order":  {strings.Replace(strings.Replace(strings.Replace(good, "## Plan / TODO", "@", 1), "## Findings", "## Plan / TODO", 1), "@", "## Findings", 1), []string{"heading", "objective"}, "not in order"},
		"heading spelled wrong":  {strings.Replace(good, "## Plan / TODO", "## Plan/TODO", 1), []string{"heading", "objective"}, "write ## Plan / TODO"},
		"heading of its own":     {strings.Replace(good, reason, "## Notes\n\nmore", 1), []string{"heading"}, `"## Notes" is none of the five`},
		"block not closed":       {strings.Replace(good, findings, findings+"\n```\ncode", 1), []string{"heading"}, "a code block is not closed"},
		"objective changed":      {strings.Replace(good, "spring concerts", "concerts", 1), []string{"objective"}, "copy it"},
		"objective extended":     {strings.Replace(good, "sources.", "sources.\nAlso prices.", 1), []string{"objective"}, ""},
		"objective cut":          {strings.Replace(good, "Names, dates and sources.", "", 1), []string{"objective"}, ""},
		"objective gone":         {strings.Replace(good, task, "", 1), []string{"objective"}, ""},
		"figure lost":            {strings.Replace(good, "42.5 % sold, ", "", 1), []string{"lost"}, `"42.5 %"`},
		"figure changed":         {strings.Replace(good, "42.5 %", "425 %", 1), []string{"lost"}, `"42.5 %"`},
		"measure changed":        {strings.Replace(good, "120 people", "120 pages", 1), []string{"lost"}, `"120 people"`},
		"URL lost":               {strings.Replace(good, "https://example.com/a?id=7", "the site", 1), []string{"lost"}, `"https://example.com/a?id=7"`},
		"URL shortened":          {strings.Replace(good, "a?id=7", "a", 1), []string{"lost"}, ""},
		"id lost":                {strings.Replace(good, "EV-2071", "known", 1), []string{"lost"}, `"EV-2071"`},
		"date lost":              {strings.Replace(good, "2026-05-03", "in May", 1), []string{"lost"}, `"2026-05-03"`},
		"all of it lost":         {strings.Replace(good, findings, "- none", 1), []string{"lost"}, ""},
		"tool call":              {strings.Replace(good, reason, `<tool_call>{"name":"read"}</tool_call>`, 1), []string{"tool-marker"}, `"<tool_call"`},
		"only a tool call":       {`<tool_call>{"name":"read","arguments":{}}</tool_call>`, []string{"heading", "lost", "tool-marker"}, ""},
		"tool call of DeepSeek":  {good + "<｜tool▁calls▁begin｜>", []string{"tool-marker"}, ""},
		"tool call of Mistral":   {good + "[TOOL_CALLS] []", []string{"tool-marker"}, ""},
		"our own bounds":         {good + "</working-memory>", []string{"tool-marker"}, ""},
		"no rating":              {strings.Replace(good, coverage, "Fairly sure.", 1), []string{"rating"}, "holds no number"},
		"prose only":             {"I have updated the document as you asked.", []string{"heading", "lost"}, ""},
		"words before it":        {"The plan follows.\n" + good, nil, ""},
		"JSON in place of it":    {`{"objective":"x"}`, []string{"heading", "lost"}, ""},
		"50 KB":                  {good + strings.Repeat("more words here ", 3200), []string{"too-long"}, "more than 8000"},
		"50 KB without headings": {strings.Repeat("x", 50<<10), []string{"heading", "lost", "too-long"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := workingmemory.Revise(old(t), c.answer, 8000)
			if diff := cmp.Diff(c.want, codes(got.Problems)); diff != "" {
				t.Errorf("problems differ (-want +got):\n%s\n%v", diff, got.Problems)
			}
			if !strings.Contains(fmt.Sprint(got.Problems), c.says) {
				t.Errorf("the problems do not say %q: %v", c.says, got.Problems)
			}
		})
	}
}

// What carries no meaning is forgiven, and what was forgiven does not stay in the document.
func TestReviseAcceptsOtherWaysToWriteTheSame(t *testing.T) {
	t.Parallel()
	good := page(task, plan, findings, reason, coverage)
	want := old(t).String()
	for name, answer := range map[string]string{
		"as it is":                    good,
		"fenced":                      "```markdown\n" + good + "```",
		"fenced with words around it": "Here is the document:\n\n```\n" + good + "```\n\nLet me know!",
		"long fence":                  "````md\n" + good + "````\n",
		"fence never closed":          "```markdown\n" + good,
		"words before":                "Sure. The new document:\n\n" + good,
		"thinking before":             "<think>what now?\n## Findings</think>\n\n" + good,
		"carriage returns":            strings.ReplaceAll(good, "\n", "\r\n"),
		"white space at line ends":    strings.ReplaceAll(good, "\n", " \n"),
		"no blank lines":              strings.ReplaceAll(good, "\n\n", "\n"),
		"many blank lines":            strings.ReplaceAll(good, "\n\n", "\n\n\n"),
		"dropped list":                good + "\n<!-- dropped: nothing of use -->",
		"dropped list in the fence":   "```\n" + good + "\n<!-- dropped: a -->\n```",
		"dropped list after it":       "```\n" + good + "```\n<!-- DROPPED: a -->",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := workingmemory.Revise(old(t), answer, 8000)
			if len(got.Problems) > 0 {
				t.Fatalf("refused: %v", got.Problems)
			}
			if got.Document.Section(workingmemory.Objective) != task {
				t.Errorf("the objective is %q", got.Document.Section(workingmemory.Objective))
			}
			trimmed := strings.ReplaceAll(got.Document.String(), " \n", "\n")
			if diff := cmp.Diff(want, trimmed); diff != "" {
				t.Errorf("the document differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReviseKeepsExactThings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after string
		lost          bool
	}{
		"space in a figure":            {"5 GB", "5GB", false},
		"no-break space":               {"5 GB", "5\u00a0GB", false},
		"long measure":                 {"3 hours", "3 h", false},
		"percent in words":             {"42.5 percent", "42.5 %", false},
		"full-width percent":           {"42.5 %", "42.5％", false},
		"thousands":                    {"1,200 km", "1200 km", false},
		"decimal is no thousand":       {"1,2 km", "12 km", true},
		"price":                        {"$1,200.50", "$1200.50", false},
		"price gone":                   {"$1,200.50", "expensive", true},
		"price of another size":        {"$3 million", "$3 billion", true},
		"sign gone":                    {"it is -5 °C", "it is 5 °C", true},
		"minus sign":                   {"it is -5 °C", "it is −5 °C", false},
		"a figure inside another":      {"5 GB", "15 GB", true},
		"case of a measure":            {"5 MB", "5 mb", true},
		"count without a measure":      {"it took 3 tries", "it took several tries", false},
		"date in words":                {"3 May 2026", "2026-05-03", false},
		"date, month first":            {"May 3rd, 2026", "3 May 2026", false},
		"date, another day":            {"3 May 2026", "4 May 2026", true},
		"date with its time":           {"2026-05-03T19:30Z", "2026-05-03", false},
		"date in Japanese":             {"2026年5月3日", "2026-05-03", false},
		"date in numbers":              {"03/05/2026", "in spring", true},
		"amount in Japanese":           {"入場料は2000円です", "入場料は無料です", true},
		"amount in Japanese kept":      {"入場料は2000円です", "料金2000円", false},
		"id next to Japanese":          {"番号EV-2071です", "EV-2071", false},
		"id next to Japanese lost":     {"番号EV-2071です", "番号", true},
		"URL next to Japanese":         {"詳細はhttps://example.jp/aを参照。", "[詳細](https://example.jp/a)", false},
		"URL with a bracket":           {"(see https://en.example.org/wiki/A_(b))", "https://en.example.org/wiki/A_(b)", false},
		"URL at the end of a sentence": {"See https://example.com/x.", "https://example.com/x", false},
		"URL with a slash at its end":  {"https://example.com/", "https://example.com", false},
		"URL of another page":          {"https://example.com/ab", "https://example.com/abc", true},
		"UUID":                         {"550e8400-e29b-41d4-a716-446655440000", "550e8400", true},
		"number of an issue":           {"#4711", "the issue", true},
		"long number":                  {"order 20260503", "the order", true},
		"id in a path":                 {"EV-2071", "/events/EV-2071/edit", false},
		"id in another id":             {"EV-2071", "EV-20710", true},
		"ordinal":                      {"the 10th concert", "the tenth concert", false},
		"September in short":           {"Sept. 3, 2026", "3 September 2026", false},
		"a month is a word too":        {"it may 5 times", "it may 5 times", false},
		"month without a day":          {"in May 2026", "in spring", false},
		"no such date":                 {"99 May 2026", "spring", false},
		"year and month":               {"2026-05", "spring", true},
		"date and time to the second":  {"2026-05-03 19:30:15.5.", "2026-05-03", false},
		"Japanese date, not complete":  {"2026年5月", "2026年5月", false},
		"version":                      {"v1.2.3", "a version", true},
		"billions in short":            {"$3bn", "$3 billion", false},
		"thousands in short":           {"$5k", "$6k", true},
		"a sign of money alone":        {"paid in $ only", "paid", false},
		"speed":                        {"90 km/h", "90 km", true},
		"per day":                      {"5 km/day", "5 km a day", false},
		"temperature":                  {"20 °C", "20 °F", true},
		"area":                         {"50 m²", "50 m", true},
		"no measure behind a number":   {"5m2x", "5m2x", false},
		"not a URL":                    {"http is a protocol", "a protocol", false},
		"secure URL":                   {"https://example.com/x", "http://example.com/x", true},
		"hash of a commit":             {"commit 1ce813c", "the commit", true},
		"named as dropped":             {"5 GB and https://example.com/x", "nothing\n<!-- dropped: 5 GB; https://example.com/x -->", false},
		"other things dropped":         {"5 GB and https://example.com/x", "nothing\n<!-- dropped: 6 GB; https://example.com/x -->", true},
		"all named as dropped":         {"5 GB", "nothing\n<!-- dropped: everything -->", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := mustRevise(t, workingmemory.New(task), page(task, plan, "- "+c.before, reason, coverage))
			text, tail, _ := strings.Cut(c.after, "\n")
			got := workingmemory.Revise(from, page(task, plan, "- "+text, reason, coverage)+tail, 8000)
			want := []string(nil)
			if c.lost {
				want = []string{"lost"}
			}
			if diff := cmp.Diff(want, codes(got.Problems)); diff != "" {
				t.Errorf("%q → %q: %v", c.before, c.after, got.Problems)
			}
		})
	}
}

func TestReviseRefusesASuddenShrink(t *testing.T) {
	t.Parallel()
	prose := func(n int) string {
		return page(task, plan, findings, strings.Repeat("and so it went on. ", n), coverage)
	}
	from := mustRevise(t, workingmemory.New(task), prose(200))
	for name, c := range map[string]struct {
		answer string
		want   []string
	}{
		"by 60 %": {prose(70), []string{"too-short"}},
		"by 40 %": {prose(120), nil},
	} {
		if diff := cmp.Diff(c.want, codes(workingmemory.Revise(from, c.answer, 8000).Problems)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	small := mustRevise(t, workingmemory.New(task), prose(60))
	if got := workingmemory.Revise(small, prose(1), 8000); len(got.Problems) > 0 {
		t.Errorf("a document of less than 2,000 characters may shrink: %v", got.Problems)
	}
}

// Characters are counted, not bytes: a Japanese document of 1,900 characters has three times as many bytes.
func TestReviseCountsCharacters(t *testing.T) {
	t.Parallel()
	prose := func(n int) string {
		return page("春の演奏会", plan, "- なし", strings.Repeat("演奏会を調べた。", n), coverage)
	}
	from := mustRevise(t, workingmemory.New("春の演奏会"), prose(220))
	if got := workingmemory.Revise(from, prose(10), 8000); len(got.Problems) > 0 {
		t.Errorf("refused: %v", got.Problems)
	}
	from = mustRevise(t, workingmemory.New("春の演奏会"), prose(300))
	if diff := cmp.Diff([]string{"too-short"}, codes(workingmemory.Revise(from, prose(10), 8000).Problems)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReviseKeepsAnObjectiveThatLooksLikeADocument(t *testing.T) {
	t.Parallel()
	for name, objective := range map[string]string{
		"headings":           "Explain this:\n\n## Plan / TODO\n\nx\n\n## Findings\n\n## Coverage & confidence",
		"its own heading":    "## Objective\n\nWrite about ## Objective.",
		"a fence, not ended": "Fix this:\n```go\nfunc main() {",
		"white space":        "\n  indented \t\r\nsecond\n\n\n",
		"markers":            "Explain <tool_call> and </working-memory> and <!-- dropped: x -->",
		"another script":     "東京の春の演奏会を\n調べる",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := workingmemory.Revise(workingmemory.New(objective), page(strings.TrimSpace(objective), plan, findings, reason, coverage), 8000)
			if name == "white space" {
				got = workingmemory.Revise(workingmemory.New(objective), page("  indented\nsecond", plan, findings, reason, coverage), 8000)
			}
			if len(got.Problems) > 0 {
				t.Fatalf("refused: %v", got.Problems)
			}
			if got.Document.Section(workingmemory.Objective) != objective || got.Document.Section(workingmemory.Findings) != findings {
				t.Errorf("the document is\n%s", got.Document)
			}
			back, err := workingmemory.Restore(got.Document.String(), objective)
			if err != nil || back != got.Document {
				t.Errorf("Restore = %v, %v", back, err)
			}
		})
	}
}

func TestReviseReportsManyLossesInFewLines(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 500 {
		fmt.Fprintf(&many, "- EV-%d\n", 1000+i)
	}
	from := mustRevise(t, workingmemory.New(task), page(task, plan, many.String(), reason, coverage))
	got := workingmemory.Revise(from, page(task, plan, strings.Repeat("- none of them\n", 300), reason, coverage), 8000)
	if n := len(got.Problems); n != 21 || !strings.Contains(got.Problems[20].Message, "480 more") {
		t.Errorf("%d problems, the last is %v", n, got.Problems[n-1])
	}
}

func FuzzRevise(f *testing.F) {
	good := page(task, plan, findings, reason, coverage)
	for _, seed := range []string{good, "```\n" + good + "```", good + "<!-- dropped: EV-2071 -->", "## Objective", "", "~~~\n## Findings\n", "\x00\xff", "<think>"} {
		f.Add(task, good, seed, uint16(2000))
	}
	f.Add("a\r\n\r\n## Findings", "", "## Objective\n\na\n## Findings\n## Plan / TODO", uint16(0))
	f.Fuzz(func(t *testing.T, objective, first, answer string, limit uint16) {
		most := workingmemory.Limit(0, int64(limit))
		objective, _ = workingmemory.ObjectiveOf(strings.ToValidUTF8(objective, ""), most)
		from := workingmemory.New(objective)
		for _, text := range []string{first, answer} {
			got := workingmemory.Revise(from, text, most)
			if len(got.Problems) > 0 {
				continue
			}
			checkDocument(t, got.Document, objective, most)
			again := workingmemory.Revise(from, got.Document.String()+"<!-- dropped: "+got.Dropped+" -->", most)
			if got.Dropped == "" && (len(again.Problems) > 0 || again.Document != got.Document) {
				t.Errorf("a good document is not taken as it is: %v", again.Problems)
			}
			from = got.Document
		}
	})
}

// checkDocument checks what holds for every document there is.
func checkDocument(t *testing.T, d workingmemory.Document, objective string, limit int64) {
	t.Helper()
	if d.Section(workingmemory.Objective) != objective {
		t.Errorf("the objective is %q, want %q", d.Section(workingmemory.Objective), objective)
	}
	if d.Tokens() > limit {
		t.Errorf("%d tokens, more than %d", d.Tokens(), limit)
	}
	if got := int64(len(d.String())+3) / 4; got != d.Tokens() {
		t.Errorf("Tokens = %d, the text has %d", d.Tokens(), got)
	}
	back, err := workingmemory.Restore(d.String(), objective)
	if err != nil || back != d {
		t.Errorf("Restore gives another document (%v):\n%q\n%q", err, d, back)
	}
}
