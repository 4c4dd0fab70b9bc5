package checkout

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/sandbox"
)

// gitConfig is the only configuration that git reads besides that of a mirror, which this package has made. Nothing in it
// starts a program, and nothing is asked of anybody.
const gitConfig = `[core]
	hooksPath = /dev/null
	fsmonitor = false
	attributesFile = /dev/null
	askPass = false
	sshCommand = false
	pager = cat
	editor = false
	alternateRefsCommand = false
	gitProxy = false
[credential]
	helper =
	interactive = false
[protocol]
	allow = never
	version = 2
[fetch]
	recurseSubmodules = false
	writeCommitGraph = false
[submodule]
	recurse = false
[push]
	recurseSubmodules = no
	gpgSign = false
	followTags = false
[http]
	followRedirects = initial
	lowSpeedLimit = 1000
	lowSpeedTime = 60
[gc]
	auto = 0
[maintenance]
	auto = false
[init]
	templateDir =
	defaultBranch = main
[safe]
	directory = *
	bareRepository = explicit
`

// gitProgram runs git in an environment that is built from nothing.
type gitProgram struct {
	config     Config
	cache      string // absolute
	global     string // the file of gitConfig
	home       string // an empty directory
	knownHosts string
}

func openGit(config Config) (*gitProgram, error) {
	cache, err := filepath.Abs(config.Cache)
	if err != nil {
		return nil, err
	}
	g := &gitProgram{config: config, cache: cache, global: filepath.Join(cache, "gitconfig"), home: filepath.Join(cache, "home"), knownHosts: config.KnownHosts}
	if g.knownHosts == "" {
		g.knownHosts = filepath.Join(cache, "known_hosts")
	}
	return g, errors.Join(os.MkdirAll(g.home, 0o700), os.MkdirAll(filepath.Join(cache, "git"), 0o700), writeFile(g.global, gitConfig))
}

// path returns the program, which is never looked for in the PATH of this process.
func (g *gitProgram) path() (string, error) {
	if g.config.Git != "" {
		return g.config.Git, nil
	}
	for _, dir := range filepath.SplitList(sandbox.SearchPath) {
		at := filepath.Join(dir, "git")
		if info, err := os.Stat(at); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return at, nil
		}
	}
	return "", fmt.Errorf("git is not installed on this machine (looked in %s)", sandbox.SearchPath)
}

// remote is a repository that is fetched from or pushed to.
type remote struct {
	location   string
	credential secret.Value
}

// protocol is the one by which the repository is reached.
func (r remote) protocol() string {
	if filepath.IsAbs(r.location) {
		return "file"
	}
	scheme, _, _ := strings.Cut(r.location, "://")
	return scheme
}

// call is one run of git.
type call struct {
	dir    string // the mirror
	args   []string
	stdin  io.Reader
	remote *remote
	// stdout takes the output, which is returned otherwise.
	stdout io.Writer
}

const (
	maxOutput = 256 << 20
	maxStderr = 16 << 10
)

// run runs git to its end. The error has what git said, without credentials.
func (g *gitProgram) run(ctx context.Context, c call) ([]byte, error) {
	path, err := g.path()
	if err != nil {
		return nil, err
	}
	if c.remote != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, g.config.FetchTimeout, fmt.Errorf("git took longer than %v", g.config.FetchTimeout))
		defer cancel()
	}
	args := c.args
	if c.dir != "" {
		args = append([]string{"--git-dir=" + c.dir}, args...)
	}
	command := exec.CommandContext(ctx, path, args...)
	command.Dir = g.home
	command.Stdin = c.stdin
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = 5 * time.Second
	env, release, err := g.environment(c.remote)
	if err != nil {
		return nil, err
	}
	defer release()
	command.Env = env
	out, said := &bounded{most: maxOutput}, &bounded{most: maxStderr}
	command.Stdout, command.Stderr = out, said
	if c.stdout != nil {
		command.Stdout = c.stdout
	}
	err = command.Run()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return out.Bytes(), &gitError{cause: err, said: c.remote.clean(said.String())}
	case out.cut:
		return nil, fmt.Errorf("git printed more than %d bytes", maxOutput)
	}
	return out.Bytes(), nil
}

// gitError is the error of a git that failed.
type gitError struct {
	cause error
	said  string
}

// Error implements error.
func (e *gitError) Error() string {
	if e.said == "" {
		return "git: " + e.cause.Error()
	}
	return "git: " + e.said
}

// Unwrap implements errors.
func (e *gitError) Unwrap() error { return e.cause }

// clean makes one line of what git said, and takes out what must not be seen. It may be called on nil.
func (r *remote) clean(text string) string {
	if r != nil && !r.credential.Empty() {
		text = strings.ReplaceAll(text, r.credential.Reveal(), "[secret]")
		if _, password, found := strings.Cut(r.credential.Reveal(), ":"); found && password != "" {
			text = strings.ReplaceAll(text, password, "[secret]")
		}
	}
	text = strings.Map(func(c rune) rune {
		if c < ' ' && c != '\n' || c == 0x7f {
			return -1
		}
		return c
	}, text)
	return strings.Join(strings.FieldsFunc(strings.TrimSpace(text), func(c rune) bool { return c == '\n' }), "; ")
}

// bounded keeps the beginning of what is written to it.
type bounded struct {
	bytes.Buffer
	most int
	cut  bool
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	room := max(0, b.most-b.Len())
	if len(p) > room {
		b.cut = true
	}
	b.Buffer.Write(p[:min(len(p), room)])
	return len(p), nil
}

// environment is the whole environment of git. A credential is in it for the time of one call: git has no other door for it
// but files and programs.
func (g *gitProgram) environment(r *remote) (env []string, release func(), err error) {
	env = []string{
		"PATH=" + sandbox.SearchPath, "HOME=" + g.home, "LANG=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + g.global,
		"GIT_ATTR_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=false", "GIT_NO_LAZY_FETCH=1", "GIT_PROTOCOL_FROM_USER=0",
		"GIT_ADVICE=0", "GIT_NO_REPLACE_OBJECTS=1",
	}
	if r == nil {
		return append(env, "GIT_ALLOW_PROTOCOL=none"), func() {}, nil
	}
	env = append(env, "GIT_ALLOW_PROTOCOL="+r.protocol())
	switch r.protocol() {
	case "http", "https":
		return append(env, r.header()...), func() {}, nil
	case "ssh":
		return g.sshEnvironment(env, r)
	}
	return env, func() {}, nil
}

// header makes git send the credential to the host it is for, and to no other one.
func (r *remote) header() []string {
	if r.credential.Empty() {
		return nil
	}
	u, err := url.Parse(r.location)
	if err != nil {
		return nil // checked when the source was stored
	}
	user, password, found := strings.Cut(r.credential.Reveal(), ":")
	if !found {
		user, password = "x-access-token", user
	}
	settings := [][2]string{
		{"http." + u.Scheme + "://" + u.Host + "/.extraHeader", "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))},
		{"http.followRedirects", "false"},
	}
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(settings))}
	for i, s := range settings {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s[1]))
	}
	return env
}
