// Package gittool holds the tool git, with which an agent asks a repository of its workspace about its history and files.
// It runs the git of the machine without a shell, in the sandbox of the job, and takes no word of the model as it comes:
// subcommands and their options are on a list, paths stay in the work tree, and every value stands where it cannot be
// read as an option. A repository is taken for hostile: what its configuration, its attributes and its files could make
// git run or read is switched off above them, and that holds without the sandbox too.
//
// Subcommands that change a repository are offered only if the operator says so, and then only for repositories in the
// output directory. None uses the network.
package gittool

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/hozo-run/hozo/sandbox"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/command"
)

//go:embed git.md
var description string

//go:embed write.md
var writeDescription string

const schema = `{
	"type": "object",
	"properties": {
		"command": {"type": "string", "description": "The subcommand with its options and arguments, such as log -n 5 -- README.md"},
		"directory": {"type": "string", "description": "A directory of the repository's work tree, relative to the workspace root"}
	},
	"required": ["command"],
	"additionalProperties": false
}`

// Options says how the tool works on this machine. The zero value is for most: it reads and finds git by itself.
type Options struct {
	// Git is the absolute path of git; "" means the one in the directories of sandbox.SearchPath.
	Git string
	// Writes offers the subcommands that change repositories of the output directory. It is the operator's setting.
	Writes bool
}

// New returns the tool git.
func New(o Options) tool.Tool {
	g := &git{options: o, commands: offered(o.Writes)}
	d := tool.Declaration{
		Name:        "git",
		Description: strings.TrimSpace(description),
		InputSchema: json.RawMessage(schema),
		Effect:      tool.EffectRead,
		Boundary: tool.Boundary{
			Reads:     "repositories and their work trees below the read-only entries and the output directory, and the programs and libraries of the system",
			Writes:    "none",
			Network:   "none",
			Processes: "git with permitted subcommands and options, and no program that a repository names; ended with the call",
			Secrets:   "none: the environment is built from nothing, and no configuration but the repository's is read",
		},
		CommandArguments: []string{"command"},
	}
	if o.Writes {
		d.Description += "\n\n" + strings.TrimSpace(writeDescription)
		d.Effect = tool.EffectWrite
		d.Boundary.Writes = "repositories and their work trees below the output directory"
	}
	return tool.New(d, g.run)
}

// git is the tool of one program.
type git struct {
	options  Options
	commands func() *commands

	mu sync.Mutex
	// usable is the path of the git that was found to be new enough.
	usable string
}

type arguments struct {
	Command   string `json:"command"`
	Directory string `json:"directory,omitempty"`
}

func (g *git) run(ctx context.Context, env *tool.Env, a arguments) tool.Result {
	if ctx.Err() != nil {
		return tool.Errorf("the call was cancelled before it began")
	}
	words, err := split(a.Command)
	if err != nil {
		return tool.Errorf("the command cannot be understood: %v", err)
	}
	r, err := g.commands().parse(words)
	if err != nil {
		return tool.Errorf("%v", err)
	}
	if _, failed := command.Sandbox(env); failed != nil {
		return *failed
	}
	path, err := g.program(ctx, env)
	if err != nil {
		return tool.Errorf("%v; the tool git cannot be used here", err)
	}
	run, err := r.prepare(ctx, env, path, a.Directory)
	if err != nil {
		return tool.Errorf("%v", err)
	}
	return command.Run(ctx, env, *run)
}

// program returns the path of a git that is new enough.
func (g *git) program(ctx context.Context, env *tool.Env) (string, error) {
	var path string
	var err error
	if g.options.Git == "" {
		path, err = command.Find(env, "git")
	} else {
		path, err = command.Check(env, g.options.Git)
	}
	if err != nil {
		return "", err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.usable == path {
		return path, nil
	}
	s, failed := command.Sandbox(env)
	if failed != nil {
		return "", errors.New(failed.Text)
	}
	shown, err := s.Run(ctx, sandbox.Command{Path: path, Args: []string{"version"}, Dir: env.Workspace.Paths().Root,
		Env: command.Environment(env, "GIT_CONFIG_GLOBAL="+os.DevNull)})
	if err != nil {
		return "", fmt.Errorf("git could not be started: %w", err)
	}
	if v, ok := parseVersion(string(shown.Output)); !ok || v.less(oldest()) {
		return "", fmt.Errorf("git %d.%d or newer is needed, and this machine has: %s", oldest().major, oldest().minor,
			command.Clean(shown.Output[:min(len(shown.Output), 100)]))
	}
	g.usable = path
	return path, nil
}

// prepare finds the repository and makes the command for it.
func (r *request) prepare(ctx context.Context, env *tool.Env, git, directory string) (*command.Command, error) {
	dir, where, err := place(env, directory)
	if err != nil {
		return nil, err
	}
	repo, err := r.repository(ctx, dir, where)
	if err != nil {
		return nil, err
	}
	if r.writes && !repo.out {
		return nil, fmt.Errorf("%s changes a repository, and only those in the output directory may be changed; name one with directory", r.name)
	}
	above, err := repo.named(ctx, env, git)
	if err != nil {
		return nil, err
	}
	environment := repo.environment(r.writes, above)
	isRevision := func(ctx context.Context, name string) bool {
		s, failed := command.Sandbox(env)
		if failed != nil {
			return false
		}
		found, err := s.Run(ctx, sandbox.Command{Path: git, Args: []string{"rev-parse", "--verify", "--quiet", "--end-of-options", name},
			Dir: repo.dir, Env: command.Environment(env, environment...)})
		return err == nil && found.ExitCode == 0
	}
	if err := r.divide(ctx, repo, isRevision); err != nil {
		return nil, err
	}
	c := &command.Command{Path: git, Args: r.words(), Dir: repo.dir, Env: environment, Watch: r.writes}
	if r.negative != "" && (r.negativeWith == nil || r.has(r.negativeWith...)) {
		c.Negative = r.negative
	}
	if r.writes {
		skip, err := filepath.Rel(where.out, filepath.Join(repo.tree, ".git"))
		if err != nil {
			return nil, errLeadsOut
		}
		c.Skip = filepath.ToSlash(skip)
	}
	return c, nil
}

// repository returns the repository that the command is about; init makes one where there is none yet.
func (r *request) repository(ctx context.Context, dir string, where *areas) (*repository, error) {
	if r.name != "init" {
		return find(ctx, dir, where)
	}
	stat, err := os.Lstat(filepath.Join(dir, ".git"))
	repo := &repository{dir: dir, tree: dir, out: command.Below(where.out, dir)}
	if err != nil {
		return repo, nil
	}
	return repo, repo.open(ctx, stat, where)
}

// words are the arguments for git. Everything that is no option stands behind a mark that ends options.
func (r *request) words() []string {
	words := []string{"--no-pager", r.name}
	words = append(words, r.forced...)
	words = append(words, r.options...)
	operands := r.operands
	switch {
	case r.name == "shortlog" && len(operands) == 0 && !r.has("--all", "--branches", "--tags", "--remotes", "--glob", "-g", "--walk-reflogs", "--reflog"):
		operands = []string{"HEAD"} // without a revision it reads standard input
	case r.name == "branch" && !r.has("--show-current", "--list", "-l") && len(operands) == 0:
		words = append(words, "--list")
	case r.name == "tag" && !r.has("--list", "-l") && len(operands) == 0:
		words = append(words, "--list")
	}
	if r.subcommand.operands == verb {
		return r.verbWords()
	}
	kind := r.subcommand.operands
	if kind != pathsOnly && (r.marks == bothMarks || r.marks == onlyOptionsMark) {
		words = append(words, "--end-of-options")
	}
	words = append(words, operands...)
	if (kind == revisionsAndPaths || kind == patternFirst || kind == pathsOnly) && r.marks <= onlyPathsMark {
		words = append(words, "--")
	}
	return append(words, r.paths...)
}

// verbWords puts the word of the command's own first, its options and operands after it.
func (r *request) verbWords() []string {
	name, rest := "push", r.operands
	if len(rest) > 0 {
		name, rest = rest[0], rest[1:]
	}
	words := slices.Concat([]string{"--no-pager", r.name, name}, r.forced, r.options)
	if len(rest)+len(r.paths) == 0 {
		return words
	}
	words = append(words, "--end-of-options")
	words = append(words, rest...)
	if len(r.paths) > 0 {
		words = append(append(words, "--"), r.paths...)
	}
	return words
}
