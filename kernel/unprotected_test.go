package kernel

import (
	"strings"
	"testing"

	"github.com/hozo-run/hozo/sandbox"
)

func TestWhatIsNotConfinedIsSaid(t *testing.T) {
	t.Parallel()
	landlock := sandbox.Protection{Title: "files (Landlock)", Essential: true}
	for name, tc := range map[string]struct {
		off        bool
		report     sandbox.Report
		code, word string
	}{
		"all of it":           {false, sandbox.Report{Level: sandbox.LevelFull}, "", ""},
		"a part of it":        {false, sandbox.Report{Level: sandbox.LevelPartial, Protections: []sandbox.Protection{landlock}}, "sandbox-partial", "files (Landlock)"},
		"nothing":             {false, sandbox.Report{Level: sandbox.LevelNone}, "sandbox-none", "no sandbox"},
		"the operator's word": {true, sandbox.Report{Level: sandbox.LevelFull}, "sandbox-off", "the operator"},
	} {
		notice := unprotected(tc.off, tc.report)
		switch {
		case tc.code == "" && notice == nil:
		case tc.code == "" || notice == nil || notice.Code != tc.code || !strings.Contains(notice.Message, tc.word):
			t.Errorf("%s: notice %+v, want %q", name, notice, tc.code)
		}
	}
}
