package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// machine is where and when the run took place.
type machine struct {
	processor, node string
	loadBefore      string
	began           time.Time
}

func readMachine() machine {
	m := machine{processor: "unknown processor", began: time.Now(), loadBefore: load()}
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return m
	}
	for line := range strings.Lines(string(data)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			m.processor = strings.TrimSpace(value)
			break
		}
	}
	return m
}

// load returns the load averages, since a busy machine measures badly.
func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(data))[:3], " ")
}

func (m machine) String() string {
	text := fmt.Sprintf("%s, %d processors, %s/%s, %s", m.processor, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	if m.node != "" {
		text += ", Node " + m.node
	}
	return fmt.Sprintf("%s. %s, %s; load %s before, %s after.", text, m.began.UTC().Format(time.DateOnly),
		time.Since(m.began).Round(time.Second), m.loadBefore, load())
}
