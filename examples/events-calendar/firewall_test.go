package main

import (
	"strings"
	"testing"
)

func TestTheAgentSeesWhatResearchFoundAndNotWhatItRead(t *testing.T) {
	t.Parallel()
	const agent, research = "You keep a calendar + This is step ", "You research one question + This is step "
	e := newEndpoint(t, "", map[string]string{
		agent + "1":    toolCall(t, "research", `{"objective":"Find the winter market"}`),
		agent + "2":    toolCall(t, "finish", `{"answer":"One market.","confidence":0.1}`),
		research + "1": toolCall(t, "mcp__search__extract", `{"objective":"Read the page","urls":["https://rail-timetables.example.com/coast-line","https://velo-market.example.com/winter"]}`),
		research + "2": toolCall(t, "finish", `{"answer":"The market takes place at Rope Square.","confidence":0.1}`),
	})
	s := openSite(t, func(s *settings) { s.model, s.baseURL = "m", e.URL+"/v1" })
	r := s.run("Which markets are there?", "review")
	if r.Status != "completed" || r.Answer != "One market." {
		t.Fatalf("the run ended as %+v", r)
	}
	// The second page ends so; what the document of the subagent keeps of the two is their beginning.
	const raw = "No events are announced here"
	read, told := false, false
	for _, body := range e.bodies {
		own := strings.Contains(body, "Which markets are there?")
		switch {
		case own && strings.Contains(body, raw):
			t.Errorf("a request of the agent holds what its subagent read: %d bytes", len(body))
		case own && strings.Contains(body, "has ended") && strings.Contains(body, "The market takes place at Rope Square."):
			told = told || strings.Contains(body, "Find the winter market") && strings.Count(body, "## Findings") >= 2
		case strings.Contains(body, raw):
			read = true
		}
	}
	if !read || !told {
		t.Errorf("the subagent read the pages: %v; the writer of the agent was told of it with the subagent's document: %v", read, told)
	}
}
