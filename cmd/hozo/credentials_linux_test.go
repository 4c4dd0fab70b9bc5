package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// wantNoCanaryInProcesses looks at the job process that works in dir: its arguments, its environment, and those of every
// process below it.
func wantNoCanaryInProcesses(t *testing.T, dir string) {
	t.Helper()
	found := false
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range processes {
		arguments, err := os.ReadFile(process + "/cmdline")
		if err != nil {
			continue // it has ended
		}
		where, err := os.Readlink(process + "/cwd")
		if errors.Is(err, os.ErrPermission) && strings.Contains(string(arguments), "--supervised") {
			found = true // a job process hides all of itself from others of its account
			continue
		}
		if err != nil || where != dir {
			continue
		}
		wantNoCanary(t, "the arguments of "+process, string(arguments))
		if !strings.Contains(string(arguments), "--supervised") {
			continue // the program that was given the key
		}
		found = true
		environment, err := os.ReadFile(process + "/environ")
		if err != nil {
			t.Error(err)
		}
		wantNoCanary(t, fmt.Sprintf("the environment of %s", process), string(environment))
		for variable := range strings.SplitSeq(strings.TrimRight(string(environment), "\x00"), "\x00") {
			if !strings.HasPrefix(variable, "TMPDIR=") && !strings.HasPrefix(variable, "HOZO_CGROUP=") {
				t.Errorf("the environment of the job process holds %q", variable)
			}
		}
	}
	if !found {
		t.Error("no job process was found")
	}
}
