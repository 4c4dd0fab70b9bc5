package scripted_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/provider/scripted"
)

func TestYAMLBecomesTheSameJSON(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ yaml, want string }{
		"scalars":        {"a: 1\nb: x\nc: true\nd: null\ne: ~\nf: -1.50\n", `{"a":1,"b":"x","c":true,"d":null,"e":null,"f":-1.50}`},
		"quoted":         {`a: "1"` + "\nb: 'true'\n", `{"a":"1","b":"true"}`},
		"order is kept":  {"z: 1\na: 2\n", `{"z":1,"a":2}`},
		"lists":          {"- [1, a]\n- {k: v}\n", `[[1,"a"],{"k":"v"}]`},
		"block text":     {"a: |\n  one\n  <two>\n", `{"a":"one\n<two>\n"}`},
		"date is a text": {"a: 2026-01-31\n", `{"a":"2026-01-31"}`},
		"version":        {"a: 1.10\n", `{"a":1.10}`},
		"other numbers":  {"a: 0x1f\nb: 1_000\nc: .5\nd: +3\n", `{"a":31,"b":1000,"c":0.5,"d":3}`},
		"yes is a text":  {"a: yes\n", `{"a":"yes"}`},
		"JSON":           {`{"a": [1, "\u00e9"]}`, `{"a":[1,"é"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := scripted.FromYAML([]byte(tc.yaml))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
		})
	}
}

func TestYAMLThatHasNoJSONIsRefusedWithItsLine(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		yaml, code string
		line       int
	}{
		"duplicate key":   {"a: 1\na: 2\n", "duplicate-key", 2},
		"alias":           {"a: &x 1\nb: *x\n", "alias", 2},
		"merge key":       {"a: {}\nb:\n  <<: {c: 1}\n", "wrong-type", 3},
		"number as key":   {"1: a\n", "wrong-type", 1},
		"list as key":     {"? [a]\n: b\n", "wrong-type", 1},
		"infinity":        {"a: .inf\n", "wrong-type", 1},
		"binary":          {"a: !!binary aGk=\n", "wrong-type", 1},
		"tag of your own": {"a: !thing x\n", "wrong-type", 1},
		"second document": {"a: 1\n---\nb: 2\n", "syntax", 2},
		"broken":          {"a: 1\nb: [1\nc: 2\n", "syntax", 1},
		"empty":           {"# nothing\n", "syntax", 0},
		"nested too deep": {strings.Repeat("[", 80) + strings.Repeat("]", 80), "syntax", 1},
		"expanding bombs": {"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "alias", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := scripted.FromYAML([]byte(tc.yaml))
			list := problem.Of(err)
			if len(list) == 0 || list[0].Code != tc.code || list[0].Line != tc.line {
				t.Errorf("got %v, want code %s at line %d", err, tc.code, tc.line)
			}
		})
	}
}

func TestJSONIsReadStrictly(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		json, code   string
		line, column int
	}{
		"cut":             {"{\"responses\": [\n", "syntax", 1, 16},
		"text behind":     {"{\"responses\": []}\nx", "syntax", 2, 1},
		"second document": {"{\"responses\": []}\n{}", "syntax", 2, 1},
		"bad character":   {"{\n  \"responses\": [!]}", "syntax", 2, 17},
		"duplicate key":   {"{\"responses\": [],\n\"responses\": []}", "duplicate-key", 2, 14},
		"not UTF-8":       {"{\"name\": \"\xff\", \"responses\": []}", "encoding", 0, 0},
		"a list":          {"[]", "wrong-type", 1, 1},
		"nested too deep": {strings.Repeat("[", 80) + strings.Repeat("]", 80), "syntax", 1, 66},
		"no responses":    {"{}", "missing-field", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := scripted.Parse([]byte(tc.json), "s.json")
			list := problem.Of(err)
			if len(list) == 0 || list[0].Code != tc.code || list[0].Line != tc.line || list[0].Column != tc.column {
				t.Errorf("got %v, want code %s at %d:%d", err, tc.code, tc.line, tc.column)
			}
		})
	}
}

func TestAFileIsReadByItsNameOrByItsLook(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a.json": `{"responses":[]}`, "a.yaml": "responses: []\n", "a.yml": "responses: []\n",
		"a": " \n{\"responses\":[]}", "b.txt": "responses: []\n", "c.YAML": "responses: []\n",
	} {
		if _, err := scripted.Parse([]byte(text), name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := scripted.Parse([]byte("responses: []\n"), "a.json"); err == nil {
		t.Error("YAML was accepted in a file named .json")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("responses: [{text: '{{ task }}', when: {attempt: 1}}]"))
	f.Add([]byte(`{"responses":[{"parts":[{"call":{"name":"a","arguments":{"b":["{{ turn }}"]}}}],"usage":{"input":1}}]}`))
	f.Add([]byte("snippets: {a: '{{ range 3 }}x{{ end }}'}\nresponses: [{text: '{{ template \"a\" }}'}]"))
	f.Add([]byte("a: &a [1]\nb: *a\n---\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		converted, err := scripted.FromYAML(data)
		if err != nil {
			return
		}
		if !json.Valid(converted) {
			t.Fatalf("%q became %q, which is no JSON", data, converted)
		}
		_, first := scripted.Parse(data, "s.yaml")
		_, second := scripted.Parse(converted, "s.json")
		if (first == nil) != (second == nil) || len(problem.Of(first)) != len(problem.Of(second)) {
			t.Fatalf("%q: as YAML %v, as JSON %v", data, first, second)
		}
	})
}
