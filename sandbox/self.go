package sandbox

import "os"

// JobPolicy returns the policy of a job process, which reads and writes for its tools, speaks with providers and starts
// commands: the directories of the job, TCP and UDP, and what the system has of the files that name services and hosts.
// The limits have room for the job process and a command. It is for ConfineSelf and OpenThread; commands get less, from a
// Sandbox.
func JobPolicy(read, write []string) Policy {
	p := Policy{Read: read[:len(read):len(read)], Write: write, Network: true,
		Limits: Limits{Processes: 2 * DefaultProcesses, MemoryBytes: 2 * DefaultMemoryBytes}}
	for _, path := range append(jobPaths(), "/etc/services", "/etc/host.conf", "/etc/gai.conf") {
		if _, err := os.Stat(path); err == nil {
			p.Read = append(p.Read, path)
		}
	}
	return p
}

// Confined reports whether this process has been started anew by ConfineSelf.
func Confined() bool { return len(os.Args) > 0 && os.Args[0] == confinedName }

// confinedName is the name, argument 0, under which ConfineSelf starts this program again. It is no secret and no
// permission: a process that is called so without being confined harms itself only.
const confinedName = "hozo-confined"
