package workspace

// Paths are the directories of a job for what starts processes: real, absolute paths. They never reach a model.
type Paths struct {
	// Root is the working directory of processes.
	Root string
	// Read are the read-only entries, directories and files.
	Read []string
	// Out is the output directory, Tmp the directory for temporary files, "" if the job has none.
	Out, Tmp string
}

// Paths returns the directories as they were when the workspace was opened.
func (w *Workspace) Paths() Paths {
	p := Paths{Root: w.realRoot, Out: w.out.real, Tmp: w.tmp}
	if made := w.made.Load(); made != nil {
		p.Tmp = *made
	}
	for _, e := range w.entries {
		p.Read = append(p.Read, e.real)
	}
	return p
}

// UseTmp names the directory for temporary files of a job that was given none. Whoever made it for the processes of the
// job calls this before the first of them starts, and removes it after the last.
func (w *Workspace) UseTmp(dir string) error {
	_, real, err := resolve(dir)
	if err == nil {
		w.made.Store(&real)
	}
	return err
}
