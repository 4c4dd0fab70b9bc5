package journal

import (
	"errors"
	"fmt"
	"os"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
)

// Codes of the problems that Verify finds.
const (
	CodeDamaged    = "damaged"     // a frame is not what was written, or is missing
	CodeTorn       = "torn"        // there are bytes after the last whole line; the next Open moves them aside
	CodeBlob       = "blob"        // the content of an output file is missing or is another one
	CodeNotPrivate = "not-private" // others may read the journal
)

// Verify reads the whole journal at path, with the output files that it names, and returns what is wrong with it; an empty
// list means that nothing is. The summary is that of the frames before the first damage. The error is that of a file which
// cannot be read at all.
func Verify(path string) (*Summary, problem.List, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("verify journal: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, nil, fmt.Errorf("verify journal: %w", err)
	}
	var problems problem.List
	if info.Mode().Perm()&0o077 != 0 {
		problems.AddHint(CodeNotPrivate, "", "chmod 600 "+path, "others may read the journal: its mode is %v", info.Mode().Perm())
	}
	summary := new(Summary)
	if err := verifyFrames(path, summary, &problems); err != nil {
		problems.Add(CodeDamaged, "", "%v", err)
	} else if size, whole, err := lineEnds(file); err != nil {
		return nil, nil, fmt.Errorf("verify journal: %w", err)
	} else if size != whole {
		problems.Add(CodeTorn, "", "%d bytes after the last whole line are the beginning of a frame that was never stored", size-whole)
	}
	return summary, problems, nil
}

func verifyFrames(path string, summary *Summary, problems *problem.List) error {
	kept := blobs{dir: BlobsPath(path)}
	seen := map[string]bool{}
	for frame, err := range Read(path) {
		if err != nil {
			return err
		}
		if err := summary.add(frame); err != nil {
			return err
		}
		if summary.Last.Type != job.FrameCheckpoint {
			continue
		}
		c, err := checkpointOf(frame)
		if err != nil {
			return err
		}
		for _, file := range c.Files {
			if err := checkFile(file); err != nil {
				return err
			}
			if seen[file.Hash] {
				continue
			}
			seen[file.Hash] = true
			if err := kept.check(file); err != nil {
				problems.Add(CodeBlob, "", "checkpoint of frame %d: %v", summary.Last.N, err)
			}
		}
	}
	if summary.Frames == 0 {
		return errors.New("there is no whole frame")
	}
	return nil
}
