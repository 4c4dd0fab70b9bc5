package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFramesComeBackAsTheyWereAppended(t *testing.T) {
	t.Parallel()
	s := &script{t: t}
	f := created(t, Options{})
	want := [][]byte{s.spec(), s.message(1), s.finished("1.0", `a "quoted" <text> — é`)}
	if got := texts(t, f.Earlier()); len(got) != 0 {
		t.Errorf("a new journal has earlier frames: %q", got)
	}
	add(t, f, want...)
	f = reopened(t, f, Options{})
	var whole []string
	for _, frame := range want {
		whole = append(whole, string(frame))
	}
	if d := cmp.Diff(whole, texts(t, f.Earlier())); d != "" {
		t.Errorf("earlier frames (-appended +read):\n%s", d)
	}
	add(t, f, s.message(2))
	if got := texts(t, f.Earlier()); len(got) != 3 {
		t.Errorf("frames of this attempt are among the earlier ones: %q", got)
	}
	if f = reopened(t, f, Options{}); f.Summary().Last.N != 4 || f.Summary().Turns != 2 || !f.Summary().Answered || f.Summary().JobID != "job-1" {
		t.Errorf("summary %+v", f.Summary())
	}
}

func TestOnlyARegularFileIsAJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, dir} {
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Create(path, Options{}); err == nil {
			t.Errorf("%v: a journal was made", before.Mode())
		}
		if _, err := Open(path, Options{}); err == nil {
			t.Errorf("%v: a journal was opened", before.Mode())
		}
		if _, err := Summarize(Read(path)); err == nil {
			t.Errorf("%v: a journal was read", before.Mode())
		}
		after, err := os.Stat(path)
		if err != nil || after.Mode() != before.Mode() {
			t.Errorf("the mode became %v, %v; it was %v", after.Mode(), err, before.Mode())
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("something was left behind: %v, %v", entries, err)
	}
}

func TestAJournalIsPrivateAndSoIsWhatStandsBesideIt(t *testing.T) {
	t.Parallel()
	s := &script{t: t}
	out := t.TempDir()
	write(t, filepath.Join(out, "a.md"), "alpha")
	path := filepath.Join(t.TempDir(), "job.journal")
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := Create(path, Options{OutDir: out})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	add(t, f, s.spec(), s.checkpoint(1, map[string]string{"a.md": "alpha"}), s.finished("1.0", "ok"))
	for _, name := range []string{path, lockPath(path), BlobsPath(path), filepath.Join(BlobsPath(path), fileOf("", "alpha").Hash)} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
}

func TestAttemptsAreCounted(t *testing.T) {
	t.Parallel()
	s := &script{t: t}
	f := created(t, Options{})
	add(t, f, s.spec(), s.finished("1.0", ""))
	for want := int64(2); want < 5; want++ {
		if f = reopened(t, f, Options{}); f.Attempt() != want {
			t.Errorf("attempt %d, want %d", f.Attempt(), want)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, lockPath(f.path), "{")
	again, err := Open(f.path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Attempt() != 2 {
		t.Errorf("attempt %d without a count of them", again.Attempt())
	}
}

func TestAJournalHasOneProcess(t *testing.T) {
	t.Parallel()
	f := created(t, Options{})
	add(t, f, (&script{t: t}).spec(), []byte(`{"v":1,"n":2,"seq":2,"activeMs":0,"type":"step","data":{}}`))
	_, err := Open(f.path, Options{})
	if problem.KindOf(err) != problem.Conflict || !strings.Contains(fmt.Sprint(err), fmt.Sprintf("in use by process %d", os.Getpid())) {
		t.Errorf("a second opener was told %v", err)
	}
	if _, err = Create(f.path, Options{}); problem.KindOf(err) != problem.Conflict {
		t.Errorf("a second creator was told %v", err)
	}
	if got := texts(t, Read(f.path)); len(got) != 2 {
		t.Errorf("a reader got %q", got)
	}
	reopened(t, f, Options{})
}

func TestAnExistingJournalIsNotOverwritten(t *testing.T) {
	t.Parallel()
	f := created(t, Options{})
	add(t, f, (&script{t: t}).spec(), []byte(`{"v":1,"n":2,"seq":2,"activeMs":0,"type":"step","data":{}}`))
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(f.path, Options{}); problem.KindOf(err) != problem.Conflict {
		t.Errorf("the creator was told %v", err)
	}
	if got := texts(t, Read(f.path)); len(got) != 2 {
		t.Errorf("the journal holds %q", got)
	}
}

func TestAJobThatHasEndedIsNotResumed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  job.OutcomeFrame
		want string
	}{
		"completed":         {job.OutcomeFrame{Completed: &job.CompletedData{}}, "already ended as completed"},
		"failed":            {job.OutcomeFrame{Failed: &job.FailedData{Reason: job.ReasonError, Code: job.CodeOutputLimit}}, "already ended as failed: error (output-limit)"},
		"stopped by a name": {job.OutcomeFrame{Failed: &job.FailedData{Reason: job.ReasonTimeout, Code: job.CodeTimeout}}, "already ended as failed: timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{t: t}
			f := created(t, Options{})
			add(t, f, s.spec(), s.frame(job.FrameOutcome, c.end))
			if _, err := f.Append(s.message(1)); err == nil {
				t.Error("a frame after the outcome was taken")
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(f.path, Options{}); problem.KindOf(err) != problem.Conflict || !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("opened with %v", err)
			}
		})
	}
}

func TestAJournalWithoutAJobIsSaid(t *testing.T) {
	t.Parallel()
	f := created(t, Options{})
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(f.path, Options{}); problem.KindOf(err) != problem.NotFound {
		t.Errorf("an empty journal was opened with %v", err)
	}
	if _, err := Open(f.path+".missing", Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing journal was opened with %v", err)
	}
}

func TestFramesFollowEachOther(t *testing.T) {
	t.Parallel()
	const after = `{"v":1,"n":1,"seq":4,"activeMs":0,"type":"spec","data":{}}`
	for name, frames := range map[string][2]string{
		"begins without a spec": {"", `{"v":1,"n":1,"seq":0,"activeMs":0,"type":"message","data":{}}`},
		"begins too late":       {"", `{"v":1,"n":2,"seq":0,"activeMs":0,"type":"spec","data":{}}`},
		"gap":                   {after, `{"v":1,"n":3,"seq":4,"activeMs":0,"type":"message","data":{}}`},
		"twice":                 {after, `{"v":1,"n":1,"seq":4,"activeMs":0,"type":"message","data":{}}`},
		"before its events":     {after, `{"v":1,"n":2,"seq":3,"activeMs":0,"type":"message","data":{}}`},
		"another version":       {after, `{"v":2,"n":2,"seq":4,"activeMs":0,"type":"message","data":{}}`},
		"two lines":             {after, "{\"v\":1,\"n\":2,\"seq\":4,\"activeMs\":0,\"type\":\"message\",\"data\":{\n}}"},
		"an end of its own":     {after, "{\"v\":1,\"n\":2,\"seq\":4,\"activeMs\":0,\"type\":\"message\",\"data\":{}}\n"},
		"no frame":              {after, "[]"},
		"empty":                 {after, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := created(t, Options{})
			if frames[0] != "" {
				if _, err := f.Append([]byte(frames[0])); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := f.Append([]byte(frames[1])); err == nil {
				t.Fatal("the frame was taken")
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A process that is killed may leave any part of the line that it wrote.
func TestATornLineIsMovedAside(t *testing.T) {
	t.Parallel()
	s := &script{t: t}
	f := created(t, Options{})
	kept := [][]byte{s.spec(), s.message(1)}
	torn := appendLine(nil, s.finished("1.0", "lost"))
	add(t, f, kept[0])
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	whole = appendLine(whole, kept[1])
	for size := range len(torn) {
		path := filepath.Join(t.TempDir(), "torn")
		write(t, path, string(whole)+string(torn[:size]))
		again, err := Open(path, Options{})
		if err != nil {
			t.Fatalf("cut after %d bytes: %v", size, err)
		}
		if got := texts(t, again.Earlier()); len(got) != 2 || got[1] != string(kept[1]) {
			t.Fatalf("cut after %d bytes: %q", size, got)
		}
		next := &script{t: t, n: 2}
		add(t, again, next.finished("1.0", "again"))
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		if err := lastError(Read(path)); err != nil {
			t.Fatalf("cut after %d bytes and written on: %v", size, err)
		}
		aside, err := os.ReadFile(tornPath(path))
		if size == 0 && errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil || !bytes.Equal(aside, torn[:size]) {
			t.Fatalf("cut after %d bytes: aside is %q, %v", size, aside, err)
		}
	}
}

func TestDamageIsNamedByItsLineAndNeverSkipped(t *testing.T) {
	t.Parallel()
	s := &script{t: t}
	var lines [][]byte
	for _, frame := range [][]byte{s.spec(), s.message(1), s.finished("1.0", "text"), s.completed()} {
		lines = append(lines, appendLine(nil, frame))
	}
	for at := range lines {
		for i := range lines[at] {
			damaged := slices.Clone(lines)
			damaged[at] = bytes.Clone(lines[at])
			damaged[at][i] ^= 0x08
			path := "job.journal"
			var first error
			readFrames(bytes.NewReader(bytes.Join(damaged, nil)), path, func(_ []byte, err error) bool {
				first = err
				return err == nil
			})
			// Without its end the last line is one that was never stored.
			if first == nil && (at < len(lines)-1 || i < len(lines[at])-1) {
				t.Fatalf("byte %d of line %d may be changed", i, at+1)
			}
			if first != nil && !strings.Contains(first.Error(), fmt.Sprintf("line %d", at+1)) {
				t.Fatalf("byte %d of line %d: %v", i, at+1, first)
			}
		}
	}
	for at := range len(lines) - 1 {
		var first error
		readFrames(bytes.NewReader(bytes.Join(slices.Delete(slices.Clone(lines), at, at+1), nil)), "x", func(_ []byte, err error) bool {
			first = err
			return err == nil
		})
		if first == nil {
			t.Errorf("line %d may be missing", at+1)
		}
	}
}

func TestADamagedJournalIsNotOpened(t *testing.T) {
	t.Parallel()
	s := &script{t: t}
	f := created(t, Options{})
	add(t, f, s.spec(), s.message(1), s.finished("1.0", "text"))
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, f.path, strings.Replace(string(text), "Let me see.", "Let me flee.", 1))
	if _, err := Open(f.path, Options{}); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("opened with %v", err)
	}
}

func TestFramesThatWaitTogetherShareAFlush(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t}
		d := &fakeDisk{flushing: make(chan struct{}), proceed: make(chan struct{})}
		f := onDisk(d, Options{})
		first, err := f.Append(s.spec())
		if err != nil {
			t.Fatal(err)
		}
		<-d.flushing
		var all []<-chan error
		for i := range 50 {
			stored, err := f.Append(s.finished(fmt.Sprint(i), ""))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, stored)
		}
		select {
		case <-first:
			t.Error("a frame is stored before its flush has ended")
		default:
		}
		d.proceed <- struct{}{}
		if err := <-first; err != nil {
			t.Error(err)
		}
		<-d.flushing
		d.proceed <- struct{}{}
		for _, stored := range all {
			if err := <-stored; err != nil {
				t.Error(err)
			}
		}
		if d.syncs.Load() != 2 {
			t.Errorf("%d flushes for a frame and 50 that came during its flush", d.syncs.Load())
		}
		if err := f.Close(); err != nil || d.syncs.Load() != 2 {
			t.Errorf("closed with %v after %d flushes", err, d.syncs.Load())
		}
	})
}

func TestFramesThatNobodyWaitsForAreFlushedTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t}
		d := &fakeDisk{}
		f := onDisk(d, Options{})
		last, err := f.Append(s.spec())
		for i := range int64(100) {
			if err == nil {
				last, err = f.Append(s.message(i + 1))
			}
			synctest.Wait()
		}
		if err != nil {
			t.Fatal(err)
		}
		if d.syncs.Load() != 0 {
			t.Errorf("%d flushes although nobody waits", d.syncs.Load())
		}
		if err := <-last; err != nil || d.syncs.Load() != 1 {
			t.Errorf("%v after %d flushes", err, d.syncs.Load())
		}
		started, err := f.Append(s.frame(job.FrameCallStarted, job.CallStartedFrame{CallID: "1.0"}))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case <-started:
		default:
			t.Error("a call that starts waits for a clock")
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestEventsAreStoredBeforeTheirFrames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t}
		d := &fakeDisk{}
		reached := make(chan int64)
		f := onDisk(d, Options{Stored: func(seq int64) error {
			if got := <-reached; got != seq {
				return fmt.Errorf("event %d", got)
			}
			return nil
		}})
		stored, err := f.Append(s.spec())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(d.content) != 0 {
			t.Errorf("written before its events: %q", d.content)
		}
		reached <- 2
		if err := <-stored; err != nil {
			t.Error(err)
		}
		if stored, err = f.Append(s.message(1)); err != nil {
			t.Fatal(err)
		}
		reached <- 3
		if err := <-stored; err == nil {
			t.Error("a frame is stored whose events are not")
		}
		if err := f.Close(); err == nil {
			t.Error("closed without a word")
		}
	})
}

func TestAFullDiskLeavesNoPartOfAFrame(t *testing.T) {
	t.Parallel()
	s := &script{t: t}
	d := &fakeDisk{room: 600}
	f := onDisk(d, Options{})
	if err := tryAdd(f, s.spec(), s.finished("1.0", "short")); err != nil {
		t.Fatal(err)
	}
	before := string(d.content)
	stored, err := f.Append(s.finished("1.1", strings.Repeat("long ", 200)))
	if err != nil {
		t.Fatal(err)
	}
	if err := <-stored; !errors.Is(err, errNoSpace) {
		t.Errorf("the waiting runtime was told %v", err)
	}
	d.room = 0
	if err := tryAdd(f, s.finished("1.2", "")); !errors.Is(err, errNoSpace) {
		t.Errorf("a journal that failed took a frame: %v", err)
	}
	if err := f.Close(); !errors.Is(err, errNoSpace) {
		t.Errorf("closed with %v", err)
	}
	if string(d.content) != before {
		t.Errorf("the file holds %q", d.content)
	}
}

func TestAFlushThatFailedIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	s := &script{t: t}
	d := &fakeDisk{syncError: errors.New("input/output error")}
	f := onDisk(d, Options{})
	if err := tryAdd(f, s.spec(), s.finished("1.0", "")); err == nil {
		t.Error("stored")
	}
	d.syncError = nil
	if err := tryAdd(f, s.finished("1.1", "")); err == nil {
		t.Error("a journal that failed once says that a frame is stored")
	}
	if err := f.Close(); err == nil || d.syncs.Load() != 1 {
		t.Errorf("closed with %v after %d flushes", err, d.syncs.Load())
	}
}

func TestForkedFramesAreTheEarlierOnes(t *testing.T) {
	t.Parallel()
	s := &script{t: t}
	source := created(t, Options{})
	add(t, source, s.spec(), s.message(1), s.finished("1.0", "a"))
	f := created(t, Options{Earlier: Fork{Turn: 1}.Frames(Read(source.path))})
	if got := texts(t, f.Earlier()); len(got) != 3 {
		t.Errorf("earlier frames %q", got)
	}
}

func FuzzRead(f *testing.F) {
	line := appendLine(nil, []byte(`{"v":1,"n":1,"seq":0,"activeMs":0,"type":"spec","data":{"jobId":"a"}}`))
	f.Add(line)
	f.Add(line[:len(line)-1])
	f.Add(append(bytes.Clone(line), line...))
	f.Add([]byte("\n"))
	f.Add([]byte(`"}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var n int64
		readFrames(io.LimitReader(bytes.NewReader(data), 1<<20), "fuzz", func(frame []byte, err error) bool {
			if err != nil {
				return false
			}
			n++
			head, err := job.ParseFrameHead(frame)
			if err != nil || head.N != n {
				t.Fatalf("frame %d of the file has the head %+v, %v", n, head, err)
			}
			return true
		})
	})
}
