package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hozo-run/hozo/bench/harness"
)

// row is one measure of the table.
type row struct {
	title       string
	measurement string
	value       func(*harness.Record) float64
	// more says that a larger figure is better.
	more bool
}

func rows() []row {
	return []row{
		{"CPU a call, 1 run at a time, us", steady, func(r *harness.Record) float64 { return r.CPUMicros }, false},
		{"CPU a call, 100 runs at a time, us", burst, func(r *harness.Record) float64 { return r.CPUMicros }, false},
		{"CPU a call, runs of 200 turns, us", deep, func(r *harness.Record) float64 { return r.CPUMicros }, false},
		{"calls a second on one core", burst, func(r *harness.Record) float64 { return r.CallsPerSec }, true},
		{"allocations a call", burst, func(r *harness.Record) float64 { return r.Allocs }, false},
		{"KB allocated a call", burst, func(r *harness.Record) float64 { return r.AllocKB }, false},
		{"peak RSS, 1,000 runs at a time, MB", crowd, func(r *harness.Record) float64 { return r.PeakRSSMB }, false},
		{"RSS of an active run, KB", active, func(r *harness.Record) float64 { return r.RunRSSKB }, false},
		{"CPU of a new agent, us", agents, func(r *harness.Record) float64 { return r.AgentMicros }, false},
		{"memory of a new agent, KB", agents, func(r *harness.Record) float64 { return r.AgentKB }, false},
		{"exec to first model request, ms", starts, func(r *harness.Record) float64 { return r.FirstRequestMS }, false},
		{"peak RSS of that process, MB", starts, func(r *harness.Record) float64 { return r.ProcessRSSMB }, false},
	}
}

// bar is a proportion that hozo holds itself to: at most so many times a peer's figure, or at least, where more is better.
type bar struct {
	title, peer string
	limit       float64
}

func bars() []bar {
	const cpu, long, first = "CPU a call, 100 runs at a time, us", "CPU a call, runs of 200 turns, us", "exec to first model request, ms"
	return []bar{
		{cpu, "eino-react", 1.0 / 3}, {cpu, "pi-agent-core", 1.0 / 10}, {cpu, "floor", 115.0 / 48},
		{long, "eino-react", 1.0 / 4}, {long, "pi-agent-core", 1.0 / 11}, {long, "floor", 180.0 / 92},
		{"calls a second on one core", "langchaingo", 2.5}, {"calls a second on one core", "pi-agent-core", 9},
		{"peak RSS, 1,000 runs at a time, MB", "fantasy", 1.0 / 2}, {"peak RSS, 1,000 runs at a time, MB", "pi-agent-core", 1.0 / 4},
		{"RSS of an active run, KB", "floor", 60.0 / 44},
		{"CPU of a new agent, us", "pi-agent-core", 10.0 / 12},
		{first, "floor", 10.0 / 3.3}, {first, "fantasy", 10.0 / 4.4},
		{"peak RSS of that process, MB", "fantasy", 25.0 / 13},
	}
}

// searchBar is the same for a search.
type searchBar struct {
	prefix, program string
	limit           float64
}

func searchBars() []searchBar {
	return []searchBar{{"grep, tree", "rg -uuu", 1.5}, {"grep, tree", "GNU grep", 1}, {"grep, 256 MB", "rg -uuu", 3}, {"find", "fd", 1}}
}

// report prints the tables and writes them, and every record, to the output directory.
func (b *bench) report() error {
	var w strings.Builder
	fmt.Fprintln(&w, b.machine)
	fmt.Fprintf(&w, "In brackets: hozo's figure divided by this one.\n\n")
	b.writeTable(&w)
	b.writeSearches(&w)
	b.writeToolCalls(&w)
	b.writeBars(&w)
	writeList(&w, "Missing", b.missing)
	writeList(&w, "Went wrong", b.failures)
	if _, err := fmt.Print(w.String()); err != nil {
		return err
	}
	if err := b.writeJSON(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.out, "table.md"), []byte(w.String()), 0o644)
}

func writeList(w *strings.Builder, title string, list []string) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s:\n\n", title)
	for _, item := range list {
		fmt.Fprintf(w, "- %s\n", strings.ReplaceAll(item, "\n", " "))
	}
}

func (b *bench) writeTable(w *strings.Builder) {
	if len(b.subjects) == 0 {
		return
	}
	header, rule := "| measure |", "|---|"
	for _, s := range b.subjects {
		header += " " + strings.TrimSpace(s.name+" "+s.version) + " |"
		rule += "---:|"
	}
	fmt.Fprintf(w, "%s\n%s\n", header, rule)
	for _, r := range rows() {
		own, hasOwn := b.results.median("hozo", r.measurement, r.value)
		line, known := "| "+r.title+" |", false
		for _, s := range b.subjects {
			value, ok := b.results.median(s.name, r.measurement, r.value)
			ok = ok && value > 0
			known = known || ok
			line += " " + cell(value, ok, own, hasOwn && s.name != "hozo") + " |"
		}
		if known {
			fmt.Fprintln(w, line)
		}
	}
}

// cell writes a figure and, in brackets, what hozo's is in proportion.
func cell(value float64, ok bool, own float64, compare bool) string {
	switch {
	case !ok:
		return "-"
	case compare && own > 0:
		return fmt.Sprintf("%s (%s)", figure(value), figure(own/value))
	}
	return figure(value)
}

// figure writes a number with three significant digits or all of its whole part.
func figure(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func (b *bench) writeSearches(w *strings.Builder) {
	if len(b.searches) == 0 {
		return
	}
	fmt.Fprintf(w, "\n| search | program | ms, whole process | hozo's in proportion | ms, the tool call | peak RSS, MB | lines found |\n")
	fmt.Fprintf(w, "|---|---|---:|---:|---:|---:|---:|\n")
	for _, s := range b.searches {
		ratio, call := "", ""
		if own, ok := b.searchTime(s.search, "hozo"); ok && s.program != "hozo" {
			ratio = figure(own / s.ms)
		}
		if s.callMS > 0 {
			call = figure(s.callMS)
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %d |\n", s.search, s.program, figure(s.ms), ratio, call, figure(s.rssMB), s.lines)
	}
}

func (b *bench) searchTime(search, program string) (float64, bool) {
	for _, s := range b.searches {
		if s.search == search && s.program == program {
			return s.ms, true
		}
	}
	return 0, false
}

// writeBars says which bars are held. It informs and decides nothing.
func (b *bench) writeBars(w *strings.Builder) {
	fmt.Fprintf(w, "\n| bar | against | wanted | measured | |\n|---|---|---:|---:|---|\n")
	for _, c := range bars() {
		for _, r := range rows() {
			if r.title != c.title {
				continue
			}
			own, ok := b.results.median("hozo", r.measurement, r.value)
			peer, known := b.results.median(c.peer, r.measurement, r.value)
			if ok && known && peer > 0 {
				writeBar(w, r.title, c.peer, c.limit, own/peer, r.more)
			}
		}
	}
	for _, c := range searchBars() {
		for _, s := range b.searches {
			if own, ok := b.searchTime(s.search, "hozo"); ok && s.program == c.program && strings.HasPrefix(s.search, c.prefix) {
				writeBar(w, s.search, c.program, c.limit, own/s.ms, false)
			}
		}
	}
	b.writeToolBars(w)
}

func writeBar(w *strings.Builder, title, peer string, limit, measured float64, more bool) {
	sign, held := "at most", measured <= limit
	if more {
		sign, held = "at least", measured >= limit
	}
	verdict := "held"
	if !held {
		verdict = "MISSED"
	}
	fmt.Fprintf(w, "| %s | %s | %s %s | %s | %s |\n", title, peer, sign, figure(limit), figure(measured), verdict)
}
