package filetool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/hozo-run/hozo/workspace/walk"
)

// maxCounted is the size up to which the lines of a file are counted.
const maxCounted = 16 << 20

// lineCounter tells the size of files and counts their lines. It belongs to one worker.
type lineCounter struct{ block []byte }

// describe returns what stands behind the path of a file, such as " (120 bytes, 4 lines)". Lines are told of text only;
// nothing is told of a file that cannot be opened.
func (c *lineCounter) describe(ctx context.Context, e *walk.Entry) string {
	f, ok := e.Open()
	if !ok {
		return ""
	}
	defer f.Close()
	size := plural(f.Size(), "byte")
	if f.Size() > maxCounted {
		return fmt.Sprintf(" (%s)", size)
	}
	lines, text, err := c.count(ctx, f)
	if err != nil && ctx.Err() == nil {
		e.Fail(err)
	}
	if err != nil || !text {
		return fmt.Sprintf(" (%s)", size)
	}
	return fmt.Sprintf(" (%s, %s)", size, plural(lines, "line"))
}

// count returns the number of lines as read shows them, and false for data that is no text.
func (c *lineCounter) count(ctx context.Context, r io.Reader) (lines int64, text bool, err error) {
	if c.block == nil {
		const blockSize = 64 << 10
		c.block = make([]byte, blockSize)
	}
	last := byte('\n')
	for {
		n, err := r.Read(c.block)
		block := c.block[:n]
		if bytes.IndexByte(block, 0) >= 0 {
			return 0, false, nil
		}
		if n > 0 {
			lines += int64(bytes.Count(block, newline))
			last = block[n-1]
		}
		switch {
		case errors.Is(err, io.EOF):
			if last != '\n' {
				lines++
			}
			return lines, true, nil
		case err != nil:
			return 0, false, err
		case ctx.Err() != nil:
			return 0, false, ctx.Err()
		}
	}
}
