package harness

// Record is one measurement. Fields that a mode does not measure are 0.
type Record struct {
	Peer string `json:"peer"`
	Mode string `json:"mode"`
	Work Work   `json:"work"`

	// Requests is what fakellm received, ToolCalls and Deltas what the runner saw.
	Requests  int64 `json:"requests"`
	ToolCalls int64 `json:"toolCalls"`
	Deltas    int64 `json:"deltas"`
	// RequestKB is the size of the request bodies, a request.
	RequestKB float64 `json:"requestKB"`

	// CPUMicros is user and system time of the process, a request (mode runs). CallsPerSec is requests a second of wall
	// time.
	CPUMicros   float64 `json:"cpuMicros"`
	CallsPerSec float64 `json:"callsPerSec"`
	Allocs      float64 `json:"allocs"` // a request
	AllocKB     float64 `json:"allocKB"`
	PeakRSSMB   float64 `json:"peakRSSMB"`

	// AgentMicros is CPU time, AgentKB is live heap and stacks, both an agent (mode agents).
	AgentMicros float64 `json:"agentMicros"`
	AgentKB     float64 `json:"agentKB"`

	// Held is how many runs were in the middle of a response at once, RunRSSKB and RunHeapKB what each of them added to
	// the process (mode active).
	Held      int64   `json:"held"`
	BaseRSSMB float64 `json:"baseRSSMB"`
	RunRSSKB  float64 `json:"runRSSKB"`
	RunHeapKB float64 `json:"runHeapKB"`

	// FirstRequestMS is the time from exec to the first model request, TotalMS to the exit, ProcessRSSMB the largest
	// resident memory (mode start, filled by whoever starts the process; medians).
	FirstRequestMS float64 `json:"firstRequestMS"`
	TotalMS        float64 `json:"totalMS"`
	ProcessRSSMB   float64 `json:"processRSSMB"`
}

// OK reports whether the work was done: the runtime made the requests and ran the tools that were asked for.
func (r *Record) OK() bool {
	switch r.Mode {
	case "runs":
		return r.Requests == r.Work.Requests() && r.ToolCalls == int64(r.Work.Runs)*int64(r.Work.Turns)
	case "active":
		return r.Held == int64(r.Work.Runs)
	}
	return true
}
