package jobproc_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/jobproc"
)

// openJournal opens what the parent lent with "--journal-fd", nil without it.
func openJournal() (*os.File, error) {
	at := slices.Index(os.Args, "--journal-fd")
	if at < 0 {
		return nil, nil
	}
	fd, err := strconv.Atoi(os.Args[at+1])
	if err != nil {
		return nil, err
	}
	return jobproc.OpenJournal(fd)
}

// recorder makes the frames of a fake job.
type recorder struct {
	journal job.Journal
	n       int64
	earlier [][]byte
}

func frameLine(n, seq int64, kind job.FrameType, data string) []byte {
	return fmt.Appendf(nil, `{"v":1,"n":%d,"seq":%d,"activeMs":%d,"type":%q,"data":%s}`, n, seq, 10*n, kind, data)
}

// record appends a frame after the newest event.
func (j *fakeJob) record(kind job.FrameType, data string) <-chan error {
	return j.recordAt(j.seq, kind, data)
}

func (j *fakeJob) recordAt(seq int64, kind job.FrameType, data string) <-chan error {
	j.frames.n++
	stored, err := j.frames.journal.Append(frameLine(j.frames.n, seq, kind, data))
	if err != nil {
		failed := make(chan error, 1)
		failed <- err
		return failed
	}
	return stored
}

// begin starts the attempt: a job that is resumed reads its earlier frames first.
func (j *fakeJob) begin() {
	if j.spec.Resume == nil {
		j.emit(&job.StartedData{Runtime: "fake"})
		j.record(job.FrameSpec, `{"jobId":"job-1"}`)
		return
	}
	j.seq = j.spec.Resume.NextSeq - 1
	if j.spec.Task == "copy" {
		j.emit(&job.StartedData{Runtime: "fake"})
		return
	}
	for frame, err := range j.frames.journal.Earlier() {
		if err != nil {
			j.failJournal(err)
			return
		}
		j.frames.n++
		j.frames.earlier = append(j.frames.earlier, frame)
	}
	j.emit(&job.ResumedData{Attempt: j.spec.Resume.Attempt, Turn: 1, VoidFromSeq: j.spec.Resume.NextSeq})
}

func (j *fakeJob) failJournal(err error) {
	j.outcome.Failed = &job.FailedData{Reason: job.ReasonError, Code: job.CodeJournalFailed, Message: err.Error()}
}

func (j *fakeJob) workWithJournal() {
	task, argument, _ := strings.Cut(j.spec.Task, " ")
	switch task {
	case "record":
		// Each event has its frame; the answer waits until all are stored.
		n, last := 0, (<-chan error)(nil)
		fmt.Sscan(argument, &n)
		for i := range n {
			j.emit(&job.MessageDeltaData{Turn: 1, Try: 1, Text: strconv.Itoa(i)})
			last = j.record(job.FrameStep, strconv.Quote(strings.Repeat("f", 3000)))
		}
		j.endAfter(last, argument)
	case "ahead":
		// The frame is appended before its event is reported.
		stored := j.recordAt(j.seq+1, job.FrameStep, "1")
		select {
		case err := <-stored:
			j.answer(fmt.Sprintf("stored too early: %v", err))
		case <-j.abort:
			j.emit(&job.MessageDeltaData{Turn: 1, Try: 1, Text: "now"})
			j.endAfter(stored, "stored after its event")
		}
	case "earlier":
		text, err := json.Marshal(j.frames.earlier)
		if err != nil {
			panic(err)
		}
		j.answer(string(text))
	case "copy":
		j.copyEarlier()
	case "suspend":
		<-j.detach
		j.suspend()
	case "inherit":
		j.answer(inherited(j.raw))
	case "die":
		if err := <-j.record(job.FrameStep, "1"); err != nil {
			panic(err)
		}
		if argument == "in a frame" {
			fmt.Fprint(j.raw, `{"v":1,"n":3,"se`)
		}
		if argument == "ahead" {
			j.recordAt(j.seq+1, job.FrameStep, "2")
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "break":
		fmt.Fprintln(j.raw, argument)
		rest()
	default:
		j.work()
	}
}

func (j *fakeJob) endAfter(stored <-chan error, answer string) {
	if err := <-stored; err != nil {
		j.failJournal(err)
		return
	}
	j.answer(answer)
}

// copyEarlier takes the frames of another job over and waits for each before it asks for the next.
func (j *fakeJob) copyEarlier() {
	copied := 0
	for frame, err := range j.frames.journal.Earlier() {
		if err == nil {
			err = <-j.record(job.FrameStep, strconv.Quote(string(frame)))
		}
		if err != nil {
			j.failJournal(err)
			return
		}
		copied++
	}
	j.answer(strconv.Itoa(copied))
}

func (j *fakeJob) suspend() {
	data := &job.SuspendedData{Waits: []job.Wait{}}
	if err := <-j.record(job.FrameSuspended, `{"waits":[]}`); err != nil {
		j.failJournal(err)
		return
	}
	j.outcome.Suspended = data
}

// inherited says whether a command of the job could write to its journal.
func inherited(journal *os.File) string {
	c := exec.Command("/bin/sh", "-c", fmt.Sprintf("echo forged >&%d", journal.Fd()))
	err := c.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "closed"
	}
	return fmt.Sprint("open: ", err)
}

// Detach implements job.Handle.
func (j *fakeJob) Detach() {
	select {
	case j.detach <- struct{}{}:
	default:
	}
}
