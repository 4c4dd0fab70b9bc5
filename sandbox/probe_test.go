package sandbox

import (
	"runtime"
	"testing"
)

func TestReportSaysWhatToDo(t *testing.T) {
	t.Parallel()
	r := Probe()
	if r.System == "" || len(r.Protections) == 0 {
		t.Fatalf("report: %+v", r)
	}
	seen := map[string]bool{}
	for _, p := range r.Protections {
		if p.Name == "" || p.Title == "" || p.Evidence == "" || p.Effect == "" || seen[p.Name] {
			t.Errorf("protection: %+v", p)
		}
		seen[p.Name] = true
		if p.Essential && !p.Active && p.Fix == "" {
			t.Errorf("%s is not active and nothing is said about a remedy", p.Name)
		}
		if r.Has(p.Name) != p.Active {
			t.Errorf("Has(%q) = %t", p.Name, !p.Active)
		}
	}
	if (len(r.Missing()) == 0) != (r.Level == LevelFull) {
		t.Errorf("level %s with %d essential protections missing", r.Level, len(r.Missing()))
	}
	if runtime.GOOS != "linux" && r.Level != LevelNone {
		t.Errorf("level %s on %s", r.Level, runtime.GOOS)
	}
	if r.Has("no such protection") {
		t.Error("a protection that does not exist is active")
	}
}

func TestLevels(t *testing.T) {
	t.Parallel()
	on, off, aside := Protection{Essential: true, Active: true}, Protection{Essential: true}, Protection{Active: true}
	for want, protections := range map[Level][]Protection{
		LevelFull: {on, on, {}}, LevelPartial: {on, off}, LevelNone: {off, off, aside},
	} {
		if got := level(protections); got != want {
			t.Errorf("%v: %s", protections, got)
		}
	}
}
