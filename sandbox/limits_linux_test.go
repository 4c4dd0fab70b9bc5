package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSmokeLimitsOfResources: each limit is reached with a limit and passed without one.
func TestSmokeLimitsOfResources(t *testing.T) {
	t.Parallel()
	for way, off := range ways() {
		for _, tc := range []struct {
			name    string
			limits  Limits
			script  string
			refusal string
		}{
			{"memory", Limits{MemoryBytes: 64 << 20}, "head -c 100000000 /dev/zero | tail -c +100000001000 | wc -c; perl -e '$x = \"x\" x 100_000_000; print \"had it\\n\"'", "memory"},
			{"file size", Limits{FileBytes: 1 << 20}, "perl -e '$SIG{XFSZ} = \"IGNORE\"; open F, \">\", \"big\"; syswrite(F, \"x\" x 1_000_000) for 1..2; exit(-s \"big\" < 2_000_000)' && echo had it", ""},
			{"open files", Limits{OpenFiles: 16}, "perl -e 'for (1..50) { open $f[$_], \"<\", \"/dev/null\" or die $! }' && echo had it", "Too many open files"},
			{"processor time", Limits{CPUSeconds: 1}, "perl -e '1 for 1..40_000_000_000' ; echo had it $?", "had it 1"},
		} {
			t.Run(way+"/"+tc.name, func(t *testing.T) {
				t.Parallel()
				dir := realTemp(t)
				r := run(t, open(t, Policy{Write: []string{dir}, Limits: tc.limits, without: off}), bash(dir, tc.script))
				if tc.refusal == "had it 1" {
					// SIGXCPU or SIGKILL, whatever comes first
					if !bytes.Contains(r.Output, []byte("had it 1")) {
						t.Errorf("it used more time: %+v", r)
					}
					return
				}
				if bytes.Contains(r.Output, []byte("had it")) || !bytes.Contains(bytes.ToLower(r.Output), []byte(strings.ToLower(tc.refusal))) {
					t.Errorf("not refused: %s", r.Output)
				}
				r = run(t, open(t, Policy{Write: []string{dir}, without: off}), bash(dir, tc.script))
				if !bytes.Contains(r.Output, []byte("had it")) {
					t.Errorf("refused without the limit: %s", r.Output)
				}
			})
		}
	}
}

// TestSmokeLimitsOfProcesses is the fork bomb, with and without its limit. It runs alone: without namespaces the other
// processes of this account count as well.
func TestSmokeLimitsOfProcesses(t *testing.T) {
	if !Probe().Has(ProtectionProcesses) {
		t.Skip("process-limit is not active for this account on this machine")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for way, off := range ways() {
		t.Run(way, func(t *testing.T) {
			dir := realTemp(t)
			attempt := func(l Limits) Result {
				l.MemoryBytes = -1
				s := open(t, Policy{Read: []string{self}, Write: []string{dir}, Limits: l, without: off})
				return run(t, s, Command{Path: self, Args: []string{"attack", "processes", "120"}, Dir: dir, Env: []string{"GOMAXPROCS=1"}})
			}
			if r := attempt(Limits{}); r.ExitCode != 0 {
				t.Errorf("120 processes are too many by default: %s", r.Output)
			}
			r := attempt(Limits{Processes: 60})
			if r.ExitCode == 0 {
				t.Error("120 processes although 60 are the limit")
			}
			// The Go runtime ends the program when it cannot have a thread, which is a refusal as well.
			if !bytes.Contains(r.Output, []byte("resource temporarily unavailable")) && !bytes.Contains(r.Output, []byte("failed to create new OS thread")) {
				t.Errorf("refused for another reason: %s", r.Output)
			}
			bomb := run(t, open(t, Policy{Limits: Limits{Processes: 60}, without: off}), bash("/", ":(){ :|:& };: 2>/dev/null; wait; echo over"))
			if bomb.TimedOut {
				t.Errorf("the bomb did not end: %s", bomb.Output)
			}
		})
	}
}

func TestControlGroupsAreRemoved(t *testing.T) {
	t.Parallel()
	groups := findCgroups()
	if groups.fault != "" {
		t.Skip("cgroup: " + groups.fault)
	}
	s := open(t, Policy{})
	if r := run(t, s, bash("/", "exit 3")); r.ExitCode != 3 {
		t.Fatalf("result: %+v", r)
	}
	dirs := s.starter.confined.group.dirs
	if len(dirs) == 0 {
		t.Fatal("there is no group")
	}
	for _, dir := range dirs {
		if !strings.HasPrefix(filepath.Base(dir), fmt.Sprintf("%s%d-", groupPrefix, os.Getpid())) {
			t.Errorf("%s is no name of a group", dir)
		}
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
	s.Close()
	for _, dir := range dirs {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", dir, err)
		}
	}
}
