package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// traps are the files with which other programs configure themselves; none of them is anything to this one.
func traps(below string) map[string]string {
	files := map[string]string{}
	for _, name := range []string{
		"AGENTS.md", "CLAUDE.md", "SYSTEM.md", "GEMINI.md", ".mcp.json", "mcp.json", "settings.json", ".env", ".cursorrules",
		".pi/settings.json", ".pi/SYSTEM.md", ".pi/agent/AGENTS.md", ".claude/settings.json", ".agents/reader.md", "agents/reader.md",
		".hozo/config.json", ".config/hozo/config.json", ".config/hozo.yaml", ".hozorc", "hozo.json", "hozo.yaml",
		".netrc", ".ssh/id_ed25519", ".git/config", ".gitconfig", "skills/trap/SKILL.md",
	} {
		files[filepath.Join(below, name)] = "canary of " + name
	}
	return files
}

func TestSmokeIsolationNothingIsOpenedThatIsNotNamed(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	files := map[string]string{
		"named/agent.md": agentFile,
		"named/script.yaml": `responses:
  - parts:
      - call: {name: read, arguments: {path: a.txt}}
      - call: {name: write, arguments: {path: notes.md, content: hello}}
  - text: Done.
`,
		"checkout/a.txt": "hello",
	}
	for _, below := range []string{"home", "checkout", "cwd"} {
		for name, text := range traps(below) {
			files[name] = text
		}
	}
	// The agent's own folder is named by its path: the skills beside an agent belong to it.
	dir := plant(t, files)
	home := filepath.Join(dir, "home")
	env := []string{"HOME=" + home, "XDG_CONFIG_HOME=" + home + "/.config", "XDG_DATA_HOME=" + home, "XDG_CACHE_HOME=" + home,
		"HOZO_CONFIG=" + home + "/hozo.json", "PATH=" + os.Getenv("PATH")}
	run := hozo(t, filepath.Join(dir, "cwd"), env)
	trace := filepath.Join(dir, "trace")
	command := &exec.Cmd{Path: strace, Dir: run.Dir, Env: run.Env, Args: []string{"strace", "-f", "-qq", "-e", "trace=file", "-s", "4096", "-o", trace,
		named(t, dir), "run", "../named/agent.md", "Go.", "--script", "../named/script.yaml", "--workspace", "../checkout", "--out", "../out", "--json"}}
	stdout, stderr, code := finished(t, command)
	if strings.Contains(stderr, "ptrace") && code != 0 {
		t.Skipf("strace cannot trace here: %s", stderr)
	}
	if code != 0 || !strings.Contains(stdout, `"type":"job.completed"`) {
		t.Fatalf("exit code %d\n%s\n%s", code, stdout, stderr)
	}
	calls, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(calls), "a.txt") {
		t.Error("the trace does not show the file that the agent read")
	}
	for line := range strings.Lines(string(calls)) {
		for name := range files {
			if strings.HasPrefix(name, "named/") || name == "checkout/a.txt" {
				continue
			}
			_, base, _ := strings.Cut(name, "/")
			if touches(line, filepath.Join(dir, name), base) {
				t.Errorf("%s was looked at: %s", name, line)
			}
		}
	}
	if strings.Contains(stdout, "canary") {
		t.Errorf("a trap is in the events:\n%s", stdout)
	}
}

// touches reports whether a traced call names a file by its whole path or by its path below some directory.
func touches(line, whole, base string) bool {
	return strings.Contains(line, `"`+whole+`"`) || regexp.MustCompile(`"(\./|\.\./\w+/)?`+regexp.QuoteMeta(base)+`"`).MatchString(line)
}

// named makes a link to the test binary under the program's name, which decides what it is.
func named(t *testing.T, dir string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "bin", "hozo")
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	return link
}
