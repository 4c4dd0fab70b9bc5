package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/journal"
)

// longJob runs a job of 50 turns, which writes, changes and removes files, and returns its directory.
func longJob(t *testing.T) string {
	t.Helper()
	dir := plant(t, map[string]string{"agent.md": agentFile, "src/a.txt": "hello\n", "script.yaml": `responses:
  - repeat: 24
    parts:
      - call: {name: write, arguments: {path: "{{ mod turn 7 }}/{{ turn }}.md", content: "turn {{ turn }}\n"}}
      - call: {name: write, arguments: {path: "newest.md", content: "turn {{ turn }}\n"}}
      - call: {name: read, arguments: {path: a.txt}}
  - parts: [{call: {name: shell, arguments: {command: "rm -r ../out/3; chmod +x ../out/newest.md"}}}]
  - repeat: 24
    parts: [{call: {name: write, arguments: {path: "newest.md", content: "turn {{ turn }}\n"}}}]
  - text: Done.
`})
	_, stderr, code := finished(t, hozo(t, dir, nil, "run", "agent.md", "Go.", "--script", "script.yaml", "--workspace", "src", "--out", "out",
		"--journal", "run.journal", "--quiet"))
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	return dir
}

func TestALongJobIsReplayedByteForByteWithoutItsWorkspace(t *testing.T) {
	t.Parallel()
	dir := longJob(t)
	for _, name := range []string{"src", "out", "agent.md", "script.yaml", "run.journal.blobs"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	empty := t.TempDir()
	stdout, stderr, code := finished(t, hozo(t, empty, []string{"HOME="}, "replay", filepath.Join(dir, "run.journal")))
	if code != 0 || strings.Count(stdout, ": equal\n") != 50 || !strings.HasSuffix(stdout, "50 requests compared, 0 differ; the job ended as recorded\n") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	if left, err := os.ReadDir(empty); err != nil || len(left) != 0 {
		t.Errorf("the replay wrote %v, %v", left, err)
	}
}

// A forged answer in a journal whose checksums are right again makes every later request another one.
func TestAReplayNamesTheTurnsThatDiffer(t *testing.T) {
	t.Parallel()
	dir := longJob(t)
	path := filepath.Join(dir, "forged.journal")
	f, err := journal.Create(path, journal.Options{Blobs: journal.BlobsPath(filepath.Join(dir, "run.journal"))})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var stored <-chan error
	for frame, err := range journal.Read(filepath.Join(dir, "run.journal")) {
		if err == nil {
			if strings.Contains(string(frame), `"callId":"48.0"`) {
				frame = []byte(strings.Replace(string(frame), `"text":"`, `"text":"forged `, 1))
			}
			stored, err = f.Append(frame)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := <-stored; err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := finished(t, hozo(t, dir, nil, "replay", path))
	if code != 1 || strings.Count(stdout, ": equal\n") != 48 || !strings.Contains(stdout, "turn 49 POST /scripted") ||
		strings.Count(stdout, "DIFFERS: the body has now ") != 2 || !strings.Contains(stderr, "2 requests of 50 differ") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
}

func TestAForkBeginsWithTheFilesOfItsTurn(t *testing.T) {
	t.Parallel()
	dir := longJob(t)
	path := filepath.Join(dir, "run.journal")
	if err := os.WriteFile(filepath.Join(dir, "ends.yaml"), []byte("responses: [{repeat: forever, text: Enough.}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, turn := range []int{0, 1, 24, 25, 49} {
		t.Run(fmt.Sprint("turn ", turn), func(t *testing.T) {
			t.Parallel()
			want := map[string]string{}
			for n := 1; n <= turn; n++ {
				if n <= 24 {
					want[fmt.Sprintf("%d/%d.md", n%7, n)] = fmt.Sprintf("turn %d\n", n)
				}
				if n != 25 {
					want["newest.md"] = fmt.Sprintf("turn %d\n", n)
				}
			}
			for name := range want {
				if turn >= 25 && strings.HasPrefix(name, "3/") {
					delete(want, name)
				}
			}
			out := filepath.Join(t.TempDir(), "out")
			stdout, stderr, code := finished(t, hozo(t, dir, nil, "fork", path, "--turn", fmt.Sprint(turn), "--out", out,
				"--journal", filepath.Join(t.TempDir(), "fork.journal"), "--script", "ends.yaml"))
			if code != 0 || stdout != "Enough.\n" {
				t.Fatalf("exit code %d: %s\n%s", code, stdout, stderr)
			}
			if d := cmp.Diff(want, files(t, out)); d != "" {
				t.Errorf("files (-turn %d +fork):\n%s", turn, d)
			}
			if info, err := os.Stat(filepath.Join(out, "newest.md")); turn == 25 && (err != nil || info.Mode()&0o100 == 0) {
				t.Errorf("newest.md is not executable any more: %v %v", info, err)
			}
		})
	}
}

// files returns the content of every file below a directory.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		found[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
