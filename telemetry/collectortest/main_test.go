// Package collectortest checks the export of jobs against the receiver of the OpenTelemetry collector. It is a module of
// its own, so that the collector's many dependencies stay out of the program. The receiver runs in a process of its own
// (this test program again) and writes what it took as JSON Lines; the jobs are those of the real program.
package collectortest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

// beCollector makes this program the collector instead of the test.
const beCollector = "HOZO_TEST_COLLECTOR"

func TestMain(m *testing.M) {
	if os.Getenv(beCollector) != "" {
		if err := collect(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// line is one line of the collector: its address first, then what it took.
type line struct {
	Address string          `json:"address,omitempty"`
	Traces  json.RawMessage `json:"traces,omitempty"`
	Metrics json.RawMessage `json:"metrics,omitempty"`
}

// collect runs the receiver until in ends.
func collect(in io.Reader, out io.Writer) error {
	ctx := context.Background()
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := probe.Addr().String()
	probe.Close()
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	wish := map[string]any{"protocols": map[string]any{"http": map[string]any{"endpoint": address}}}
	if err := confmap.NewFromStringMap(wish).Unmarshal(config); err != nil {
		return err
	}
	w := &writer{out: json.NewEncoder(out)}
	traces, err := consumer.NewTraces(w.traces)
	if err != nil {
		return err
	}
	metrics, err := consumer.NewMetrics(w.metrics)
	if err != nil {
		return err
	}
	settings := receivertest.NewNopSettings(factory.Type())
	first, err := factory.CreateTraces(ctx, settings, config, traces)
	if err != nil {
		return err
	}
	second, err := factory.CreateMetrics(ctx, settings, config, metrics)
	if err != nil {
		return err
	}
	all := []component.Component{first, second}
	for _, c := range all {
		if err := c.Start(ctx, componenttest.NewNopHost()); err != nil {
			return err
		}
	}
	w.write(line{Address: address})
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err
	}
	for _, c := range all {
		if err := c.Shutdown(ctx); err != nil {
			return err
		}
	}
	return nil
}

type writer struct {
	mu  sync.Mutex
	out *json.Encoder
}

func (w *writer) write(l line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.out.Encode(l); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func (w *writer) traces(_ context.Context, t ptrace.Traces) error {
	data, err := (&ptrace.JSONMarshaler{}).MarshalTraces(t)
	w.write(line{Traces: data})
	return err
}

func (w *writer) metrics(_ context.Context, m pmetric.Metrics) error {
	data, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(m)
	w.write(line{Metrics: data})
	return err
}

// collector is a running collector process.
type collector struct {
	address string
	command *exec.Cmd
	stdin   io.Closer
	lines   *bufio.Reader
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{command: exec.Command(self)}
	c.command.Env = append(os.Environ(), beCollector+"=1")
	c.command.Stderr = os.Stderr
	stdin, err := c.command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.stdin, c.lines = stdin, bufio.NewReader(stdout)
	if err := c.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.stdin.Close(); c.command.Process.Kill() })
	var first line
	if err := json.NewDecoder(io.LimitReader(byteByByte{c.lines}, 4096)).Decode(&first); err != nil || first.Address == "" {
		t.Fatalf("the collector did not start: %v", err)
	}
	c.address = first.Address
	return c
}

// byteByByte keeps a decoder from reading ahead.
type byteByByte struct{ from *bufio.Reader }

func (b byteByByte) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return b.from.Read(p[:1])
}

// end stops the collector and returns everything it took, and its output as it was.
func (c *collector) end(t *testing.T) (taken, string) {
	t.Helper()
	c.stdin.Close()
	output, err := io.ReadAll(c.lines)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.command.Wait(); err != nil {
		t.Fatalf("the collector ended with %v", err)
	}
	return read(t, output), string(output)
}

// built is the program under test, built once.
var built struct {
	sync.Once
	dir  string
	fail error
}

func program(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		if built.dir, built.fail = os.MkdirTemp("", "hozo-collectortest-"); built.fail != nil {
			return
		}
		build := exec.Command("go", "build", "-o", filepath.Join(built.dir, "hozo"), "./cmd/hozo")
		build.Dir = filepath.Join("..", "..")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if output, err := build.CombinedOutput(); err != nil {
			built.fail = fmt.Errorf("build the program: %w\n%s", err, output)
		}
	})
	if built.fail != nil {
		t.Fatal(built.fail)
	}
	return filepath.Join(built.dir, "hozo")
}
