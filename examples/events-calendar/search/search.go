// Package search is a small MCP server with the two tools that web search servers have, over a handful of pages that are
// part of the program. It lets the example run, and its tests prove things, without a network and without an account. The
// pages announce events of a town that does not exist, on days that are counted from today, so that they never grow old.
package search

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

//go:embed pages.json
var pagesJSON []byte

// Page is one page of the small web.
type Page struct {
	URL     string `json:"url"`
	Title   string `json:"title"`
	Content string `json:"content"`
}

// Config is what a server is built from.
type Config struct {
	// Now is the clock from which the days of the pages are counted; nil is that of the machine.
	Now func() time.Time
}

// Handler returns the server, to be served over HTTP at any path.
func Handler(c Config) (http.Handler, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	var pages []Page
	if err := json.Unmarshal(pagesJSON, &pages); err != nil {
		return nil, fmt.Errorf("read the pages: %w", err)
	}
	w := &web{pages: pages, now: c.Now, day: regexp.MustCompile(`\{day ([0-9]+)\}`)}
	server := mcp.NewServer(&mcp.Implementation{Name: "small-web", Version: "1"}, nil)
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true}
	mcp.AddTool(server, &mcp.Tool{Name: "search", Annotations: reads,
		Description: "Searches the web. Returns pages with title, address and the beginning of their text, the best first."}, w.search)
	mcp.AddTool(server, &mcp.Tool{Name: "extract", Annotations: reads,
		Description: "Returns the whole text of pages."}, w.extract)
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}), nil
}

// web is the pages.
type web struct {
	pages []Page
	now   func() time.Time
	day   *regexp.Regexp
}

// dated returns a page with its days counted from today.
func (w *web) dated(p Page) Page {
	p.Content = w.day.ReplaceAllStringFunc(p.Content, func(match string) string {
		n, err := strconv.Atoi(w.day.FindStringSubmatch(match)[1])
		if err != nil {
			return match
		}
		return w.now().UTC().AddDate(0, 0, n).Format("2006-01-02")
	})
	return p
}

type searchInput struct {
	Query      string `json:"query" jsonschema:"what to look for"`
	MaxResults int    `json:"max_results,omitempty" jsonschema:"how many pages to return, 5 if left out"`
}

type extractInput struct {
	URLs []string `json:"urls" jsonschema:"the addresses of the pages"`
}

type answer struct {
	Results []Page `json:"results"`
}

const snippet = 300

func (w *web) search(_ context.Context, _ *mcp.CallToolRequest, in searchInput) (*mcp.CallToolResult, answer, error) {
	wanted := words(in.Query)
	score := func(p Page) int {
		n := 0
		for _, word := range words(p.Title + " " + p.Content) {
			if slices.Contains(wanted, word) {
				n++
			}
		}
		return n
	}
	var found []Page
	for _, p := range w.pages {
		if score(p) > 0 {
			found = append(found, w.dated(p))
		}
	}
	slices.SortStableFunc(found, func(a, b Page) int { return cmp.Compare(score(b), score(a)) })
	if in.MaxResults <= 0 {
		in.MaxResults = 5
	}
	found = found[:min(len(found), in.MaxResults)]
	for i := range found {
		if len(found[i].Content) > snippet {
			found[i].Content = strings.ToValidUTF8(found[i].Content[:snippet], "") + "…"
		}
	}
	return nil, answer{Results: append([]Page{}, found...)}, nil
}

func (w *web) extract(_ context.Context, _ *mcp.CallToolRequest, in extractInput) (*mcp.CallToolResult, answer, error) {
	a := answer{Results: []Page{}}
	for _, p := range w.pages {
		if slices.Contains(in.URLs, p.URL) {
			a.Results = append(a.Results, w.dated(p))
		}
	}
	if len(a.Results) == 0 {
		return nil, a, fmt.Errorf("none of these addresses can be read")
	}
	return nil, a, nil
}

func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
