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
	starts := ways()
	starts["untraced"] = layerTracing
	for way, off := range starts {
		for name, tc := range map[string]struct {
			limits  Limits
			script  string
			refusal string
		}{
			"memory":     {Limits{MemoryBytes: 64 << 20}, "perl -e '$x = \"x\" x 100_000_000; print \"had it\\n\"'", ""},
			"file size":  {Limits{FileBytes: 1 << 20}, "head -c 2000000 /dev/zero > big && echo had it", "File size limit exceeded"},
			"open files": {Limits{OpenFiles: 16}, "perl -e 'for (1..50) { open $f[$_], \"<\", \"/dev/null\" or die $! }' && echo had it", "Too many open files"},
		} {
			t.Run(way+"/"+name, func(t *testing.T) {
				t.Parallel()
				dir := realTemp(t)
				r := run(t, open(t, Policy{Write: []string{dir}, Limits: tc.limits, without: off}), bash(dir, tc.script))
				if bytes.Contains(r.Output, []byte("had it")) || !bytes.Contains(bytes.ToLower(r.Output), bytes.ToLower([]byte(tc.refusal))) {
					t.Errorf("not refused: %s", r.Output)
				}
				r = run(t, open(t, Policy{Write: []string{dir}, without: off}), bash(dir, tc.script))
				if !bytes.Contains(r.Output, []byte("had it")) {
					t.Errorf("refused without the limit: %s", r.Output)
				}
			})
		}
		t.Run(way+"/processor time", func(t *testing.T) {
			t.Parallel()
			r := run(t, open(t, Policy{Limits: Limits{CPUSeconds: 1}, without: off}), bash("/", "perl -e '1 while 1'; echo ended by $?"))
			if !bytes.Contains(r.Output, []byte("ended by 1")) || r.TimedOut { // 137 or 152, whichever signal comes first
				t.Errorf("result: %+v: %s", r, r.Output)
			}
		})
	}
}

func TestCoreDumpsAreForbidden(t *testing.T) {
	t.Parallel()
	for way, off := range ways() {
		if r := run(t, open(t, Policy{without: off}), bash("/", "ulimit -Sc; ulimit -Hc")); string(r.Output) != "0\n0\n" {
			t.Errorf("%s: the limits are %q", way, r.Output)
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
	requireAll(t)
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
