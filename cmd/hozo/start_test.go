package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// shippedBuild builds the program as it is shipped: the test binary holds more and starts slower.
func shippedBuild(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("building the program takes a while")
	}
	program := filepath.Join(t.TempDir(), "hozo")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// atStart are the most allocations that a package may make before main. They stand for work: a table that is built, an
// expression that is compiled, a schema that is read. What exceeds them has a reason here.
func atStart(pkg string) int {
	switch pkg {
	case "github.com/google/jsonschema-go/jsonschema":
		return 400 // its table of keywords
	case "go.yaml.in/yaml/v3":
		return 400 // its expressions and tables
	case "encoding/gob", "github.com/dustin/go-humanize":
		return 450 // come with the JavaScript engine, 0.3 ms together
	case "github.com/modelcontextprotocol/go-sdk/mcp":
		return 250 // its table of methods
	case "github.com/danielgtaylor/huma/v2":
		return 900 // the HTTP API: its expressions, 0.5 ms
	case "github.com/danielgtaylor/huma/v2/yaml":
		return 400 // comes with it
	case "golang.org/x/crypto/ssh":
		return 250 // its tables of algorithms, for sources of projects
	case "github.com/riverqueue/river", "github.com/riverqueue/river/rivershared/sqlctemplate", "github.com/riverqueue/river/riverdriver/riverpgxv5",
		"github.com/pressly/goose/v3":
		return 200 // the queue and the migrations, 0.2 ms together
	}
	return 100
}

func TestStart(t *testing.T) {
	t.Parallel()
	program := shippedBuild(t)
	t.Run("no package does work before main", func(t *testing.T) { exerciseInit(t, program) })
	t.Run("it is cheap beside true", func(t *testing.T) { exerciseStart(t, program) })
}

func exerciseInit(t *testing.T, program string) {
	command := exec.Command(program, "version")
	command.Env = []string{"GODEBUG=inittrace=1"}
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	inits := regexp.MustCompile(`(?m)^init (\S+) .* (\d+) allocs$`).FindAllStringSubmatch(string(out), -1)
	if len(inits) < 10 {
		t.Fatalf("the trace of the start is not as expected:\n%s", out)
	}
	for _, m := range inits {
		if allocations, err := strconv.Atoi(m[2]); err != nil || allocations > atStart(m[1]) {
			t.Errorf("package %s makes %d allocations before main, at most %d are allowed; do the work when it is needed", m[1], allocations, atStart(m[1]))
		}
	}
}

// quickest returns the least processor time of several runs.
func quickest(t *testing.T, name string, args ...string) time.Duration {
	t.Helper()
	least := time.Hour
	for range 15 {
		command := exec.Command(name, args...)
		if err := command.Run(); err != nil {
			t.Fatal(err)
		}
		least = min(least, command.ProcessState.UserTime()+command.ProcessState.SystemTime())
	}
	return least
}

// startRatio is how much more processor time the program may take to say its version than /bin/true takes for nothing.
// It is generous: this test is to find a table that is built at every start, not a slow day.
const startRatio = 60

func exerciseStart(t *testing.T, program string) {
	nothing := max(quickest(t, "true"), 500*time.Microsecond)
	if ours := quickest(t, program, "version"); ours > startRatio*nothing {
		t.Errorf("hozo version takes %v of processor time, true %v", ours, nothing)
	} else {
		t.Logf("hozo version takes %v of processor time, true %v", ours, nothing)
	}
}
