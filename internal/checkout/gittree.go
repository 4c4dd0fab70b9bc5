package checkout

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// writeCommit writes the files of a commit. git gives their content as it is stored: attributes, filters and line ends of
// the repository have no say, so the same commit is the same files everywhere.
func (s *Service) writeCommit(ctx context.Context, r Request, pin Pin, w *writer) ([]string, error) {
	m, err := s.mirrorOf(ctx, r, pin.Name, pin.Location)
	if err != nil {
		return nil, err
	}
	if err := m.ensure(ctx, pin.Digest); err != nil {
		return nil, err
	}
	listed, err := m.git.run(ctx, call{dir: m.dir, args: []string{"ls-tree", "-r", "-z", "-l", "--full-tree", pin.Digest}})
	if err != nil {
		return nil, err
	}
	entries, left, err := parseTree(listed)
	if err != nil {
		return nil, err
	}
	if err := s.bounded("the commit", entries); err != nil {
		return nil, err
	}
	links, err := m.writeBlobs(ctx, entries, w)
	if err != nil {
		return nil, err
	}
	for _, e := range links {
		if !staysInside(e.Path, e.Target) {
			left = append(left, fmt.Sprintf("the link %q leads out of the source", e.Path))
			continue
		}
		if err := w.link(e); err != nil {
			return nil, err
		}
	}
	if len(left) > maxLeft {
		left = append(left[:maxLeft], fmt.Sprintf("%d more", len(left)-maxLeft))
	}
	return left, nil
}

// parseTree reads what "git ls-tree -r -z -l" prints: "<mode> <type> <object> <size>\t<path>\0" for each file.
func parseTree(listed []byte) (entries []entry, left []string, err error) {
	for line := range bytes.SplitSeq(bytes.TrimSuffix(listed, []byte{0}), []byte{0}) {
		if len(line) == 0 {
			continue
		}
		head, name, found := strings.Cut(string(line), "\t")
		fields := strings.Fields(head)
		if !found || len(fields) != 4 {
			return nil, nil, fmt.Errorf("git lists %q", line)
		}
		e := entry{Path: name, object: fields[2]}
		switch fields[0] {
		case "100644", "100664":
			e.Mode = modeFile
		case "100755":
			e.Mode = modeExecutable
		case "120000":
			e.Mode = modeLink
		case "160000":
			left = append(left, fmt.Sprintf("the submodule %q is not fetched", name))
			continue
		default:
			return nil, nil, invalid("it holds %q with the mode %s", name, fields[0])
		}
		if err := checkTreePath(name); err != nil {
			return nil, nil, err
		}
		if e.Size, err = strconv.ParseInt(fields[3], 10, 64); err != nil || !isObjectID(e.object) {
			return nil, nil, fmt.Errorf("git lists %q", line)
		}
		entries = append(entries, e)
	}
	return entries, left, nil
}

// checkTreePath is checkPath for a path in a commit, which may hold no repository: a git started there would believe it.
func checkTreePath(name string) error {
	if !utf8.ValidString(name) {
		return invalid("it holds a file whose path is no UTF-8: %q", name)
	}
	if err := checkPath(name); err != nil {
		return err
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.EqualFold(part, ".git") {
			return invalid("it holds a file in a directory of git: %q", name)
		}
	}
	return nil
}

// maxTarget bounds the target of a link.
const maxTarget = 4096

// writeBlobs writes the files among the entries and returns the links with their targets.
func (m *mirror) writeBlobs(ctx context.Context, entries []entry, w *writer) (links []entry, err error) {
	if len(entries) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var asked bytes.Buffer
	for _, e := range entries {
		asked.WriteString(e.object)
		asked.WriteByte('\n')
	}
	out, in := io.Pipe()
	failed := make(chan error, 1)
	go func() {
		_, err := m.git.run(ctx, call{dir: m.dir, args: []string{"cat-file", "--batch"}, stdin: &asked, stdout: in})
		in.CloseWithError(err) // nil is the end of the output
		failed <- err
	}()
	links, err = readBatch(out, entries, w)
	if err != nil {
		cancel(err)
	}
	out.CloseWithError(err)
	if ended := <-failed; err == nil {
		err = ended
	}
	return links, err
}

// readBatch reads what "git cat-file --batch" prints: "<object> blob <size>\n<content>\n" for each entry.
func readBatch(out io.Reader, entries []entry, w *writer) (links []entry, err error) {
	from := bufio.NewReaderSize(out, 64<<10)
	for _, e := range entries {
		head, err := from.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Path, noEnd(err))
		}
		if want := fmt.Sprintf("%s blob %d\n", e.object, e.Size); head != want {
			return nil, fmt.Errorf("%s: git answers %q instead of %q", e.Path, head, want)
		}
		content := io.LimitReader(from, e.Size)
		if e.Mode == modeLink {
			target, err := io.ReadAll(io.LimitReader(content, maxTarget+1))
			if err != nil {
				return nil, err
			}
			e.Target = string(target)
			links = append(links, e)
		} else if err := w.file(e, content); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Path, err)
		}
		if _, err := io.Copy(io.Discard, content); err != nil { // the rest of a target that is too long
			return nil, err
		}
		if c, err := from.ReadByte(); err != nil || c != '\n' {
			return nil, fmt.Errorf("%s: git cut it off: %w", e.Path, noEnd(err))
		}
	}
	return links, nil
}

func noEnd(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
