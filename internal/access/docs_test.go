package access_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/internal/access"
)

func TestTheRolesAreDocumentedAsTheyAre(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/access.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range access.Permissions() {
		row := fmt.Sprintf("| `%s` |", p)
		for _, role := range access.Roles() {
			if slices.Contains(role.Permissions(), p) {
				row += " yes |"
			} else {
				row += " |"
			}
		}
		if !strings.Contains(string(text), "\n"+row+"\n") {
			t.Errorf("docs/access.md lacks the row %s", row)
		}
	}
}
