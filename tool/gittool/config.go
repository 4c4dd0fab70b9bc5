package gittool

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/sandbox"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/command"
)

// A repository has a configuration of its own, and in a repository that somebody else made it is theirs. It can name
// programs for almost everything that git does. The settings below stand above it: git takes them from its environment,
// where no file can overrule them.

// setting is one entry of the configuration.
type setting struct{ key, value string }

// settings are the same for every call. Programs become "false", which fails; files become the empty one.
func settings() []setting {
	s := []setting{
		{"core.fsmonitor", "false"}, {"core.hooksPath", os.DevNull}, {"core.alternateRefsCommand", "false"}, {"core.sshCommand", "false"},
		{"core.askPass", "false"}, {"core.gitProxy", "false"}, {"core.pager", "cat"}, {"core.editor", "false"}, {"sequence.editor", "false"},
		{"core.attributesFile", os.DevNull}, {"core.excludesFile", os.DevNull}, {"core.untrackedCache", "false"},
		{"core.quotePath", "false"}, {"core.protectHFS", "true"}, {"core.protectNTFS", "true"},
		{"diff.external", ""}, {"diff.orderFile", os.DevNull}, {"diff.autoRefreshIndex", "false"}, {"diff.submodule", "short"},
		{"diff.ignoreSubmodules", "dirty"}, {"interactive.diffFilter", "cat"}, {"status.submoduleSummary", "false"}, {"submodule.recurse", "false"},
		{"log.showSignature", "false"}, {"merge.verifySignatures", "false"},
		{"gpg.program", "false"}, {"gpg.openpgp.program", "false"}, {"gpg.x509.program", "false"}, {"gpg.ssh.program", "false"},
		{"gpg.ssh.defaultKeyCommand", "false"}, {"gpg.ssh.allowedSignersFile", os.DevNull}, {"gpg.ssh.revocationFile", os.DevNull},
		{"commit.gpgSign", "false"}, {"tag.gpgSign", "false"}, {"tag.forceSignAnnotated", "false"}, {"commit.template", os.DevNull},
		{"protocol.allow", "never"}, {"credential.helper", ""}, {"safe.bareRepository", "explicit"}, {"safe.directory", "*"},
		{"mailmap.file", os.DevNull}, {"grep.fallbackToNoIndex", "false"}, {"init.templateDir", ""},
		{"gc.auto", "0"}, {"maintenance.auto", "false"}, {"rerere.enabled", "false"}, {"help.autoCorrect", "never"},
		{"column.ui", "never"}, {"i18n.logOutputEncoding", "UTF-8"},
	}
	for _, what := range []string{"ui", "branch", "diff", "grep", "interactive", "status", "showBranch"} {
		s = append(s, setting{"color." + what, "false"})
	}
	return s
}

// environment is what git is told besides the fixed environment of commands.
func (r *repository) environment(writes bool, more []setting) []string {
	env := []string{
		"GIT_DIR=" + r.git,
		"GIT_WORK_TREE=" + r.tree,
	}
	if r.git == "" { // it is about to be made
		env = nil
	}
	env = append(env,
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=false",
		"GIT_SSH_COMMAND=false",
		"GIT_ALLOW_PROTOCOL=none",
		"GIT_PROTOCOL_FROM_USER=0",
		"GIT_NO_LAZY_FETCH=1",
		"GIT_PAGER=cat",
		"GIT_EDITOR=false",
		"GIT_SEQUENCE_EDITOR=false",
		"GIT_MERGE_AUTOEDIT=no",
		"GIT_CEILING_DIRECTORIES="+filepath.Dir(r.tree),
	)
	if !writes {
		env = append(env, "GIT_OPTIONAL_LOCKS=0")
	}
	all := slices.Concat(settings(), more)
	env = append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(all)))
	for i, s := range all {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+s.key, "GIT_CONFIG_VALUE_"+n+"="+s.value)
	}
	return env
}

// named returns what stands above the filters, merge drivers and configured hooks of the repository, whose names only its
// configuration knows.
func (r *repository) named(ctx context.Context, env *tool.Env, git string) ([]setting, error) {
	if !r.mayName() {
		return nil, nil
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	s, failed := command.Sandbox(env)
	if failed != nil {
		return nil, errors.New(failed.Text)
	}
	listed, err := s.Run(ctx, sandbox.Command{
		Path: git, Args: []string{"config", "--includes", "--name-only", "-z", "--get-regexp", `^(filter|merge|hook)\.`},
		Dir: r.dir, Env: command.Environment(env, r.environment(false, nil)...), Stderr: null,
	})
	if err != nil {
		return nil, err
	}
	if listed.ExitCode == 1 && listed.Bytes == 0 && !listed.TimedOut && !listed.Aborted {
		return nil, nil
	}
	if listed.ExitCode != 0 || listed.Truncated || listed.TimedOut || listed.Aborted {
		return nil, errors.New("the configuration of the repository cannot be read, or is too large, so the repository is not used")
	}
	return above(listed.Output), nil
}

// above returns the settings that stand above keys, which are separated by NUL.
func above(keys []byte) []setting {
	var all []setting
	for key := range bytes.SplitSeq(keys, []byte{0}) {
		section, _, _ := bytes.Cut(key, []byte{'.'})
		last := bytes.LastIndexByte(key, '.')
		if last <= len(section) { // there is no name
			continue
		}
		switch name := string(key[:last]); string(section) {
		case "filter":
			all = append(all, setting{name + ".clean", ""}, setting{name + ".smudge", ""}, setting{name + ".process", ""}, setting{name + ".required", "false"})
		case "merge":
			all = append(all, setting{name + ".driver", "false"})
		case "hook":
			all = append(all, setting{name + ".enabled", "false"}, setting{name + ".command", "true"})
		}
	}
	return slices.Compact(all)
}

// mayName reports whether the repository's configuration may have filters, merge drivers or hooks. Most have none, which its
// text shows: the names of sections cannot be written in another way.
func (r *repository) mayName() bool {
	for _, file := range []string{filepath.Join(r.common, "config"), filepath.Join(r.git, "config.worktree"), filepath.Join(r.common, "config.worktree")} {
		data, err := readSmall(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return true
		}
		text := bytes.ToLower(data)
		for _, word := range []string{"filter", "merge", "hook", "include"} {
			if bytes.Contains(text, []byte(word)) {
				return true
			}
		}
	}
	return false
}

// version is a version of git.
type version struct{ major, minor int }

// oldest is the oldest one that honours everything above.
func oldest() version { return version{2, 32} }

func (v version) less(w version) bool {
	return v.major < w.major || v.major == w.major && v.minor < w.minor
}

// parseVersion reads what "git version" prints.
func parseVersion(text string) (version, bool) {
	fields := strings.Fields(text)
	if len(fields) < 3 || fields[0] != "git" || fields[1] != "version" {
		return version{}, false
	}
	parts := strings.SplitN(fields[2], ".", 3)
	if len(parts) < 2 {
		return version{}, false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return version{major, minor}, err1 == nil && err2 == nil
}
