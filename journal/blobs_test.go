package journal

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// snapshot is what a directory holds: content by path, with a mark for files that may be run and for directories.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		if entry.IsDir() {
			found[path] = "directory"
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			found[path] = info.Mode().Type().String()
			return nil
		}
		text, err := os.ReadFile(filepath.Join(dir, path))
		found[path] = string(text)
		if info.Mode()&0o100 != 0 {
			found[path] += " (executable)"
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestACheckpointIsStoredWithItsFiles(t *testing.T) {
	t.Parallel()
	s := &script{t: t}
	out := t.TempDir()
	write(t, filepath.Join(out, "a.md"), "alpha")
	write(t, filepath.Join(out, "deep", "b.md"), "beta")
	f := created(t, Options{OutDir: out})
	add(t, f, s.spec(), s.message(1, call("x")), s.checkpoint(1, map[string]string{"a.md": "alpha", "deep/b.md": "beta"}), s.finished("1.0", "ok"))
	write(t, filepath.Join(out, "a.md"), "another alpha")
	if err := os.Remove(filepath.Join(out, "deep", "b.md")); err != nil {
		t.Fatal(err)
	}
	add(t, f, s.message(2, call("y")), s.checkpoint(2, map[string]string{"a.md": "another alpha"}, "deep/b.md"), s.finished("2.0", "ok"))
	for turn, want := range map[int64]map[string]string{
		0: {},
		1: {"a.md": "alpha", "deep": "directory", "deep/b.md": "beta"},
		2: {"a.md": "another alpha"},
	} {
		tree, err := TreeOf(Fork{Turn: turn}.Frames(Read(f.path)))
		if err != nil {
			t.Fatal(err)
		}
		restored := filepath.Join(t.TempDir(), "new", "out")
		if err := tree.Restore(restored, BlobsPath(f.path)); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, snapshot(t, restored)); d != "" {
			t.Errorf("after turn %d (-was +restored):\n%s", turn, d)
		}
	}
}

func TestRestoreLeavesExactlyTheFilesOfTheCheckpoint(t *testing.T) {
	t.Parallel()
	kept := t.TempDir()
	tree := Tree{}
	for path, content := range map[string]string{"a.md": "alpha", "deep/er/b.md": "beta", "run.sh": "true", "plain.sh": "false"} {
		file := fileOf(path, content)
		file.Executable = path == "run.sh"
		tree[path] = file
		write(t, filepath.Join(kept, file.Hash), content)
	}
	want := map[string]string{"a.md": "alpha", "deep": "directory", "deep/er": "directory", "deep/er/b.md": "beta", "run.sh": "true (executable)", "plain.sh": "false"}
	for name, before := range map[string]func(dir string) error{
		"missing":        func(string) error { return nil },
		"other content":  func(dir string) error { write(t, filepath.Join(dir, "a.md"), "gamma"); return nil },
		"further files":  func(dir string) error { write(t, filepath.Join(dir, "more", "c.md"), "gamma"); return nil },
		"a directory":    func(dir string) error { return os.MkdirAll(filepath.Join(dir, "a.md", "b"), 0o755) },
		"empty ones":     func(dir string) error { return os.MkdirAll(filepath.Join(dir, "x", "y", "z"), 0o755) },
		"a link outside": func(dir string) error { return linkIn(dir, "a.md", filepath.Join(kept, fileOf("", "alpha").Hash)) },
		"a directory as link": func(dir string) error {
			return linkIn(dir, "deep", kept)
		},
		"a pipe":     func(dir string) error { return pipeIn(dir, "a.md") },
		"other mode": func(dir string) error { return modeIn(t, dir) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "out")
			if err := before(dir); err != nil {
				t.Fatal(err)
			}
			if err := tree.Restore(dir, kept); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, snapshot(t, dir)); d != "" {
				t.Errorf("(-checkpoint +restored):\n%s", d)
			}
		})
	}
}

func linkIn(dir, name, target string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.Symlink(target, filepath.Join(dir, name))
}

func pipeIn(dir, name string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return syscall.Mkfifo(filepath.Join(dir, name), 0o600)
}

func modeIn(t *testing.T, dir string) error {
	write(t, filepath.Join(dir, "run.sh"), "true")
	write(t, filepath.Join(dir, "plain.sh"), "false")
	return os.Chmod(filepath.Join(dir, "plain.sh"), 0o755)
}

func TestAFileThatIsNotTheOneOfTheCheckpointIsNotStored(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	write(t, filepath.Join(outside, "secret"), "alpha")
	alpha := fileOf("a.md", "alpha")
	longer := fileOf("a.md", "alpha")
	longer.Size = 4
	escaping := fileOf("../a.md", "alpha")
	wrong := fileOf("a.md", "alpha")
	wrong.Hash = "../../" + wrong.Hash[6:]
	for name, c := range map[string]struct {
		file   job.CheckpointFile
		before func(out string) error
	}{
		"missing":           {alpha, func(string) error { return nil }},
		"changed":           {alpha, func(out string) error { return os.WriteFile(filepath.Join(out, "a.md"), []byte("alphb"), 0o644) }},
		"longer":            {longer, func(out string) error { return os.WriteFile(filepath.Join(out, "a.md"), []byte("alpha"), 0o644) }},
		"a pipe":            {alpha, func(out string) error { return pipeIn(out, "a.md") }},
		"a directory":       {alpha, func(out string) error { return os.Mkdir(filepath.Join(out, "a.md"), 0o755) }},
		"a link outside":    {alpha, func(out string) error { return linkIn(out, "a.md", filepath.Join(outside, "secret")) }},
		"a path outside":    {escaping, func(out string) error { return os.WriteFile(filepath.Join(out, "..", "a.md"), []byte("alpha"), 0o644) }},
		"a digest as path":  {wrong, func(out string) error { return os.WriteFile(filepath.Join(out, "a.md"), []byte("alpha"), 0o644) }},
		"no output at all":  {alpha, func(out string) error { return os.Remove(out) }},
		"a directory as it": {fileOf(".", "alpha"), func(string) error { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{t: t}
			out := filepath.Join(t.TempDir(), "out")
			if err := os.Mkdir(out, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := c.before(out); err != nil {
				t.Fatal(err)
			}
			f := created(t, Options{OutDir: out})
			if err := tryAdd(f, s.spec(), s.frame(job.FrameCheckpoint, job.CheckpointFrame{Turn: 1, Files: []job.CheckpointFile{c.file}})); err == nil {
				t.Fatal("stored")
			}
			if err := f.Close(); err == nil {
				t.Error("closed without a word")
			}
			left, err := filepath.Glob(filepath.Join(BlobsPath(f.path), "*"))
			if err != nil || len(left) != 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
			if got := texts(t, Read(f.path)); len(got) > 1 {
				t.Errorf("the checkpoint is in the journal: %q", got)
			}
		})
	}
}

func TestAForkTakesTheFilesOfItsSource(t *testing.T) {
	t.Parallel()
	s := &script{t: t}
	out := t.TempDir()
	write(t, filepath.Join(out, "a.md"), "alpha")
	source := created(t, Options{OutDir: out})
	frames := [][]byte{s.spec(), s.checkpoint(1, map[string]string{"a.md": "alpha"}), s.finished("1.0", "")}
	add(t, source, frames...)
	write(t, filepath.Join(out, "a.md"), "changed since")
	f := created(t, Options{OutDir: out, Blobs: BlobsPath(source.path)})
	add(t, f, frames...)
	if err := os.RemoveAll(BlobsPath(source.path)); err != nil {
		t.Fatal(err)
	}
	if _, problems, err := Verify(f.path); err != nil || len(problems) != 0 {
		t.Errorf("the fork depends on its source: %v, %v", problems, err)
	}
}

func TestVerifyFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(path, blob string) error
		want   []string
	}{
		"nothing":          {func(string, string) error { return nil }, nil},
		"others may read":  {func(path, _ string) error { return os.Chmod(path, 0o640) }, []string{CodeNotPrivate}},
		"missing content":  {func(_, blob string) error { return os.Remove(blob) }, []string{CodeBlob}},
		"changed content":  {func(_, blob string) error { return os.WriteFile(blob, []byte("alphb"), 0o600) }, []string{CodeBlob}},
		"torn":             {func(path, _ string) error { return appendTo(path, `{"v":1,`) }, []string{CodeTorn}},
		"a foreign line":   {func(path, _ string) error { return appendTo(path, "hello\n") }, []string{CodeDamaged}},
		"nothing is there": {func(path, _ string) error { return os.Truncate(path, 0) }, []string{CodeDamaged}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{t: t}
			out := t.TempDir()
			write(t, filepath.Join(out, "a.md"), "alpha")
			f := created(t, Options{OutDir: out})
			add(t, f, s.spec(), s.checkpoint(1, map[string]string{"a.md": "alpha"}), s.finished("1.0", ""))
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if err := c.change(f.path, filepath.Join(BlobsPath(f.path), fileOf("", "alpha").Hash)); err != nil {
				t.Fatal(err)
			}
			_, problems, err := Verify(f.path)
			if err != nil {
				t.Fatal(err)
			}
			var codes []string
			for _, p := range problems {
				codes = append(codes, p.Code)
			}
			if d := cmp.Diff(c.want, codes); d != "" {
				t.Errorf("problems (-want +got):\n%s\n%v", d, problems)
			}
		})
	}
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err != nil {
		return err
	}
	return f.Close()
}

func TestAForkEndsAfterItsTurn(t *testing.T) {
	t.Parallel()
	s := &script{t: t}
	f := created(t, Options{})
	retried := job.MessageFrame{Turn: 2, Try: 1, Purpose: llm.PurposeTurn, Fault: &job.Fault{Class: "connection"}}
	nested := job.MessageFrame{Thread: "1.0", Turn: 4, Try: 1, Purpose: llm.PurposeSubagent}
	add(t, f, s.spec(), s.message(1, call("a")), s.frame(job.FrameMessage, nested), s.finished("1.0", "first"),
		s.frame(job.FrameMessage, retried), s.message(2, call("b")), s.finished("2.0", "second"), s.message(3), s.completed())
	for name, c := range map[string]struct {
		fork   Fork
		frames int
		fault  string
	}{
		"before the first":           {Fork{Turn: 0}, 1, ""},
		"with a nested dialog":       {Fork{Turn: 1}, 4, ""},
		"after a retry":              {Fork{Turn: 2}, 7, ""},
		"at the answer":              {Fork{Turn: 3}, 8, ""},
		"after the end":              {Fork{Turn: 4}, 8, "last answered turn is 3"},
		"another answer":             {Fork{Turn: 2, Results: map[string]string{"2.0": "other"}}, 7, ""},
		"another answer of the past": {Fork{Turn: 2, Results: map[string]string{"1.0": "other"}}, 7, "1.0 is none of turn 2"},
		"an answer of no call":       {Fork{Turn: 2, Results: map[string]string{"2.7": "other"}}, 7, "2.7 has no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			count, last := 0, ""
			var fault error
			for frame, err := range c.fork.Frames(Read(f.path)) {
				if fault = err; err == nil {
					count++
					last = string(frame)
				}
			}
			if count != c.frames || (fault == nil) != (c.fault == "") || fault != nil && !strings.Contains(fault.Error(), c.fault) {
				t.Errorf("%d frames, then %v", count, fault)
			}
			if fault == nil && len(c.fork.Results) > 0 && (!strings.Contains(last, `"other"`) || strings.Contains(last, "second")) {
				t.Errorf("the answer is not replaced: %s", last)
			}
		})
	}
}

func TestTheFilesOfAJournalThatWasMovedAwayAreNotLost(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "job.journal")
	kept := filepath.Join(BlobsPath(path), "abc")
	if err := os.Mkdir(BlobsPath(path), 0o777); err != nil {
		t.Fatal(err)
	}
	write(t, kept, "alpha")
	if _, err := Create(path, Options{}); problem.KindOf(err) != problem.Conflict || !strings.Contains(err.Error(), "another journal") {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	if err := os.Remove(kept); err != nil {
		t.Fatal(err)
	}
	f, err := Create(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
