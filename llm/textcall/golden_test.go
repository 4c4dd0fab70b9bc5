package textcall

import (
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm"
)

var update = flag.Bool("update", false, "write the golden files")

// offerTools are the tools of all tests.
func offerTools() []llm.ToolSpec {
	return []llm.ToolSpec{
		{Name: "get_weather", Description: "The forecast.", InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"city":{"type":"string"},"days":{"type":"integer"},"hours":{"type":"array","items":{"type":"integer"}}},"required":["city"]}`)},
		{Name: "get_time", Description: "The time.", InputSchema: json.RawMessage(`{"type":"object","properties":{"zone":{"type":"string"}}}`)},
		{Name: "write_note", Description: "Keep a text.", InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)},
	}
}

// seen is a result as golden files hold it.
type seen struct {
	Format   Format   `json:"format,omitempty"`
	Calls    []string `json:"calls,omitempty"`
	Repaired bool     `json:"repaired,omitempty"`
	Leading  string   `json:"leading,omitempty"`
	Thinking string   `json:"thinking,omitempty"`
	Unknown  []string `json:"unknown,omitempty"`
	Refused  Reason   `json:"refused,omitempty"`
	Answer   string   `json:"answer,omitempty"`
}

func seenOf(r Result) seen {
	s := seen{Format: r.Format, Repaired: r.Repaired, Leading: r.Leading, Thinking: r.Thinking, Unknown: r.Unknown, Refused: r.Refused, Answer: r.Answer}
	for _, c := range r.Calls {
		s.Calls = append(s.Calls, strings.TrimSpace(c.Name+" "+string(c.Arguments)+c.ArgumentsError+" "+c.ID))
	}
	return s
}

// fixtures returns the replies below a folder of testdata.
func fixtures(t testing.TB, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(filepath.Join("testdata", folder), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".txt" {
			data, failed := os.ReadFile(path)
			found[filepath.ToSlash(path)], err = string(data), failed
		}
		return err
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("%d fixtures: %v", len(found), err)
	}
	return found
}

func TestRepliesReadAsInTheGoldenFiles(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"forms", "models"} {
		for path, text := range fixtures(t, folder) {
			t.Run(path, func(t *testing.T) {
				t.Parallel()
				got, err := json.MarshalIndent(seenOf(Parse(text, NewOffer(offerTools()), Options{})), "", "  ")
				if err != nil {
					t.Fatal(err)
				}
				golden := strings.TrimSuffix(path, ".txt") + ".json"
				if *update {
					if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
						t.Fatal(err)
					}
					return
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
					t.Errorf("%s", diff)
				}
			})
		}
	}
}

// TestEveryFormIsRead looks at the fixtures themselves: the golden files may not say less than what is promised.
func TestEveryFormIsRead(t *testing.T) {
	t.Parallel()
	forms := fixtures(t, "forms")
	for _, format := range llm.TextCallFormats() {
		for _, variant := range []string{"clean", "truncated", "prose"} {
			text, ok := forms["testdata/forms/"+format+"/"+variant+".txt"]
			if !ok {
				t.Errorf("%s has no fixture %q", format, variant)
				continue
			}
			r := Parse(text, NewOffer(offerTools()), Options{})
			if string(r.Format) != format || len(r.Calls) == 0 || r.Calls[0].Name != "get_weather" {
				t.Errorf("%s, %s: read as %+v", format, variant, seenOf(r))
				continue
			}
			var args struct {
				City string
				Days int
			}
			if err := json.Unmarshal(r.Calls[0].Arguments, &args); err != nil || args.City != "Oslo" || args.Days != 3 {
				t.Errorf("%s, %s: arguments %s: %v", format, variant, r.Calls[0].Arguments, err)
			}
			if variant == "prose" && format != "xlam" && !strings.Contains(r.Leading, "I will look that up for you.") {
				t.Errorf("%s: the text before the call is %q", format, r.Leading)
			}
		}
	}
	if n := len(forms); n != 3*len(llm.TextCallFormats()) {
		t.Errorf("%d fixtures for %d forms", n, len(llm.TextCallFormats()))
	}
}
