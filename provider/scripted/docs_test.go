package scripted_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/hozo-run/hozo/provider/scripted"
)

func TestEveryExampleOfTheReferenceIsAScript(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/scripted-provider.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(doc, -1)
	if len(examples) < 5 {
		t.Fatalf("found %d examples; the reference has more", len(examples))
	}
	for _, example := range examples {
		if _, err := scripted.Parse(example[1], "example.yaml"); err != nil {
			t.Errorf("%v\n%s", err, example[1])
		}
	}
}

func TestTheReferenceNamesEveryTemplateFunction(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/scripted-provider.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range scripted.FunctionNames() {
		if !regexp.MustCompile("`" + name + "[` ]").Match(doc) {
			t.Errorf("docs/scripted-provider.md does not name %q", name)
		}
	}
}
