package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"
)

// cpuMicros returns the user and system time that this process has used.
func cpuMicros() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	micros := func(t syscall.Timeval) float64 { return float64(t.Sec)*1e6 + float64(t.Usec) }
	return micros(usage.Utime) + micros(usage.Stime)
}

// statusKB returns a figure of /proc/self/status, 0 where there is none.
func statusKB(key string) float64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(data) {
		if rest, ok := bytes.CutPrefix(line, []byte(key+":")); ok {
			n, _ := strconv.ParseFloat(string(bytes.Fields(rest)[0]), 64)
			return n
		}
	}
	return 0
}

// settle returns memory that is not used to the system, so that what is left is what something holds.
func settle() {
	runtime.GC()
	runtime.GC()
	debug.FreeOSMemory()
	time.Sleep(50 * time.Millisecond)
}

// Stats is what fakellm has counted.
type Stats struct {
	Requests      int64 `json:"requests"`
	Held          int64 `json:"held"`
	RequestBytes  int64 `json:"requestBytes"`
	FirstUnixNano int64 `json:"firstUnixNano"`
}

// control has its own connections, so that the runtime's pool is as the runtime left it.
var control = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}

// ReadStats returns what fakellm at base has counted since ResetStats.
func ReadStats(base string) (Stats, error) {
	var s Stats
	response, err := control.Get(base + "/stats")
	if err != nil {
		return s, err
	}
	defer response.Body.Close()
	return s, json.NewDecoder(response.Body).Decode(&s)
}

// ResetStats sets the counters of fakellm at base to 0.
func ResetStats(base string) error { return tell(base + "/reset") }

func tell(url string) error {
	response, err := control.Post(url, "", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return nil
}
