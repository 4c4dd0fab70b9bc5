package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// huntLimit bounds a hunt. Only a process that the kernel itself holds up lasts longer.
const huntLimit = 10 * time.Second

// hunt ends all descendants of a process that adopts orphans, this one. One pass would miss what is forked meanwhile, so
// everything is stopped first, until nothing new is found, and killed then. The process must have no children that
// somebody else waits for.
func hunt(self int) {
	for began := time.Now(); reap() && time.Since(began) < huntLimit; {
		stopAll(self)
		prey := descendants(self)
		if len(prey) == 0 && len(processes()) == 0 {
			return // this process may not see others, so it would wait in vain
		}
		for _, pid := range prey {
			_ = unix.Kill(pid, unix.SIGKILL) // the only error is that it has ended
		}
		time.Sleep(time.Millisecond)
	}
}

// stopAll stops descendants until there is none that was not stopped.
func stopAll(self int) {
	const rounds = 100
	stopped := map[int]bool{}
	for range rounds {
		fresh := false
		for _, pid := range descendants(self) {
			if !stopped[pid] {
				_ = unix.Kill(pid, unix.SIGSTOP) // the only error is that it has ended
				stopped[pid], fresh = true, true
			}
		}
		if !fresh {
			return
		}
	}
}

// reap waits for all children that have ended and reports whether there are others.
func reap() bool {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG|unix.WALL, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return false
		case pid == 0:
			return true
		}
	}
}

// descendants returns the processes that come from self, in no order.
func descendants(self int) []int {
	children := map[int][]int{}
	for _, pid := range processes() {
		if parent, ok := parentOf(pid); ok {
			children[parent] = append(children[parent], pid)
		}
	}
	var found []int
	for queue := children[self]; len(queue) > 0; queue = queue[1:] {
		found = append(found, queue[0])
		queue = append(queue, children[queue[0]]...)
	}
	return found
}

func processes() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what was read before an error still counts
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// parentOf reads /proc/<pid>/stat, in which the name of the program, in parentheses, may hold anything.
func parentOf(pid int) (int, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return 0, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return parent, err == nil
}

// countTasks returns the number of processes and threads of an account. Where /proc does not show them it is that of the
// whole machine, which is more.
func countTasks(uid int) (int64, error) {
	var count int64
	for _, pid := range processes() {
		status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		if err != nil || statusField(status, "Uid:") != int64(uid) {
			continue
		}
		count += statusField(status, "Threads:")
	}
	if count > 0 {
		return count, nil
	}
	var info unix.Sysinfo_t
	err := unix.Sysinfo(&info)
	return int64(info.Procs), err
}

// statusField returns the first number of a line of /proc/<pid>/status, -1 if there is none.
func statusField(status []byte, name string) int64 {
	for line := range bytes.Lines(status) {
		fields := bytes.Fields(line)
		if len(fields) > 1 && string(fields[0]) == name {
			if n, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
				return n
			}
		}
	}
	return -1
}
