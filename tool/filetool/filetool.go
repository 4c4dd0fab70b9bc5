// Package filetool holds the tools with which an agent works on files: read, ls, grep and find look at the read-only
// entries of the job's workspace, write and edit change files of its output directory. Each tool is one Go file and one
// Markdown file with its description for models. All of them reach files through package workspace only, answer within
// 2000 lines and 51,200 bytes plus one notice in brackets, and say in that notice what was left out and how to go on.
// They hold a constant amount of memory, however large the files are.
package filetool

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/workspace"
)

// The most that one result shows, whichever comes first. A notice comes on top.
const (
	maxLines = 2000
	maxBytes = 51200
)

// Tools returns the six file tools in the order in which they are offered to models.
func Tools() []tool.Tool {
	return []tool.Tool{newRead(), newList(), newGrep(), newFind(), newWrite(), newEdit()}
}

// readingBoundary is what the four reading tools can reach.
func readingBoundary() tool.Boundary {
	return tool.Boundary{
		Reads:     "regular files and directories below the read-only entries of the workspace; links out are not followed",
		Writes:    "none",
		Network:   "none",
		Processes: "none",
		Secrets:   "none",
	}
}

// writingBoundary is what write and edit can reach. reads says which files a tool opens before it writes.
func writingBoundary(reads string) tool.Boundary {
	return tool.Boundary{
		Reads:     reads,
		Writes:    "regular files below the output directory, replaced in one step; never through links",
		Network:   "none",
		Processes: "none",
		Secrets:   "none",
	}
}

// failed turns an error of package workspace into a result.
func failed(err error) tool.Result {
	if e, ok := errors.AsType[*workspace.PathError](err); ok {
		return tool.Result{IsError: true, Text: e.Error()}
	}
	return tool.Errorf("the file could not be used: %v", err)
}

// cancelled is the result of a call whose context ended.
func cancelled() tool.Result { return tool.Errorf("the call was cancelled before it was done") }

// number is a whole number that a model gave. Fractions are cut off and values beyond the range of int64 are moved to its
// ends, since a model that writes 1e30 means "all of it".
type number int64

// UnmarshalJSON accepts any JSON number.
func (n *number) UnmarshalJSON(text []byte) error {
	if whole, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		*n = number(whole)
		return nil
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("%q is not a number", text)
	}
	switch {
	case f >= math.MaxInt64:
		*n = math.MaxInt64
	case f <= math.MinInt64:
		*n = math.MinInt64
	default:
		*n = number(f)
	}
	return nil
}

// atLeast returns the number, or fallback if none was given. A number below least is raised to it, with a remark.
func atLeast(least int64, given *number, fallback int64, name string, remarks *notice) int64 {
	if given == nil {
		return fallback
	}
	if int64(*given) < least {
		remarks.add("%s %d was taken as %d", name, int64(*given), least)
		return least
	}
	return int64(*given)
}

// notice collects remarks about a result for the bracket at its end.
type notice []string

func (n *notice) add(format string, args ...any) { *n = append(*n, fmt.Sprintf(format, args...)) }

// appendTo returns text with the remarks in one bracket after a blank line.
func (n notice) appendTo(text string) string {
	if len(n) == 0 {
		return text
	}
	bracket := "[" + strings.Join(n, ". ") + ".]"
	if text == "" {
		return bracket
	}
	return strings.TrimSuffix(text, "\n") + "\n\n" + bracket
}

// formatSize writes a size for people and models.
func formatSize(n int64) string {
	switch {
	case n < 1<<10:
		return plural(n, "byte")
	case n < 1<<20:
		return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
}

// plural returns "1 line" or "3 lines".
func plural(n int64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
