package jobproc

import (
	"os"
	"path/filepath"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/sandbox"
)

// openThread returns the thread on which the child of this spec starts: the child has the directories of its job, its own
// program and the network, and holds no capability. What the machine lacks of that is left out (sandbox.Probe).
//
// A path that is not sound, or not there, gives nothing: the child will say so, with the place in the spec.
func openThread(executable string, spec *job.Spec, tmpDir string) (*sandbox.Thread, error) {
	read := present(append([]string{executable}, spec.Workspace.ReadOnly...)...)
	return sandbox.OpenThread(sandbox.JobPolicy(read, present(spec.Workspace.OutDir, tmpDir)))
}

func present(paths ...string) []string {
	var found []string
	for _, path := range paths {
		path = filepath.Clean(path)
		if !filepath.IsAbs(path) {
			continue
		}
		if _, err := os.Stat(path); err == nil {
			found = append(found, path)
		}
	}
	return found
}
