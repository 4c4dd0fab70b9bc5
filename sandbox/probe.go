package sandbox

import "sync"

// Level sums a Report up.
type Level string

// The levels. A service that runs other people's jobs wants LevelFull or its operator's word that something else confines
// it.
const (
	// LevelFull: files, network, system calls, identities and descendants are confined.
	LevelFull Level = "full"
	// LevelPartial: some of it holds; Report.Missing says what does not.
	LevelPartial Level = "partial"
	// LevelNone: a confined process reaches what this one does.
	LevelNone Level = "none"
)

// Protection is one layer of the sandbox on this machine.
type Protection struct {
	// Name is stable and for programs, Title for people.
	Name  string `json:"name"`
	Title string `json:"title"`
	// Active says that processes are started with it.
	Active bool `json:"active"`
	// Essential says that a level of full needs it.
	Essential bool `json:"essential"`
	// Evidence says how this was found out; Effect what holds, or does not hold, because of it.
	Evidence string `json:"evidence"`
	Effect   string `json:"effect"`
	// Fix says what to do, "" if there is nothing to be done.
	Fix string `json:"fix,omitempty"`
}

// Report says which protections this process has on this machine.
type Report struct {
	Level       Level        `json:"level"`
	System      string       `json:"system"`
	Protections []Protection `json:"protections"`
}

// Missing returns the essential protections that are not active.
func (r Report) Missing() []Protection {
	var missing []Protection
	for _, p := range r.Protections {
		if p.Essential && !p.Active {
			missing = append(missing, p)
		}
	}
	return missing
}

// Has reports whether the protection with this name is active.
func (r Report) Has(name string) bool {
	for _, p := range r.Protections {
		if p.Name == name {
			return p.Active
		}
	}
	return false
}

// The names of protections.
const (
	ProtectionLandlock     = "landlock"
	ProtectionUnixSockets  = "unix-sockets"
	ProtectionNamespaces   = "namespaces"
	ProtectionSeccomp      = "seccomp"
	ProtectionNoNewPrivs   = "no-new-privs"
	ProtectionCapabilities = "capabilities"
	ProtectionProcesses    = "process-limit"
	ProtectionLimits       = "resource-limits"
	ProtectionCgroup       = "cgroup"
	ProtectionDumpable     = "undumpable"
)

// Probe finds out what this machine offers to this process. The first call asks the kernel, by doing what Command does
// and not by reading version numbers, and takes about a millisecond; the answer is kept, since it cannot change for a
// process except by ConfineSelf, which must come first.
func Probe() Report { return probed() }

var probed = sync.OnceValue(probe)

// level sums protections up.
func level(protections []Protection) Level {
	active, missing := 0, 0
	for _, p := range protections {
		switch {
		case p.Essential && p.Active:
			active++
		case p.Essential:
			missing++
		}
	}
	switch {
	case active == 0:
		return LevelNone
	case missing > 0:
		return LevelPartial
	}
	return LevelFull
}
