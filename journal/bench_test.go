package journal

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/job"
)

// BenchmarkAppend appends frames of 1 KiB: each waited for, as calls with effects are, or the last of 64.
func BenchmarkAppend(b *testing.B) {
	data, err := json.Marshal(job.CallFinishedFrame{CallID: "1.0", Text: strings.Repeat("x", 900)})
	if err != nil {
		b.Fatal(err)
	}
	for name, group := range map[string]int64{"waits for each": 1, "waits for 64": 64} {
		b.Run(name, func(b *testing.B) {
			f, err := Create(filepath.Join(b.TempDir(), "job.journal"), Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			n := int64(0)
			for b.Loop() {
				n++
				frame := job.Frame{V: job.FrameVersion, N: n, Seq: n, Type: job.FrameCallFinished, Data: data}
				if n == 1 {
					frame.Type, frame.Data = job.FrameSpec, json.RawMessage(`{}`)
				}
				line, err := json.Marshal(frame)
				if err != nil {
					b.Fatal(err)
				}
				stored, err := f.Append(line)
				if err != nil {
					b.Fatal(err)
				}
				if n%group == 0 {
					if err := <-stored; err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "frames/s")
		})
	}
}
