package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// controlGroup is a control group for the commands of one Sandbox. It is used where this process may make one: then the
// number of processes and their memory have bounds that hold for the superuser too. Moving a running process into a
// group costs milliseconds, so commands begin there: in version 2 the kernel makes them in it, in version 1 the thread
// that starts them is a member.
//
// A nil group does nothing.
type controlGroup struct {
	dirs []string // one in version 2, one for each controller in version 1
	v2   *os.File // the directory in version 2, else nil
}

// cgroupParents are the directories below which groups can be made.
type cgroupParents struct {
	v2    string // "" without version 2 or without its controllers
	v1    map[string]string
	fault string // why there are none
	bound string // the limit of processes of the group in which this process was started, "" if there is none
}

const cgroupRoot = "/sys/fs/cgroup"

// findCgroups looks for the control groups of this process that it may divide.
var findCgroups = sync.OnceValue(func() cgroupParents {
	if dir := os.Getenv(groupVariable); dir != "" {
		if limit := limitOf(dir, os.Getpid()); limit != "" {
			return cgroupParents{fault: "this process may not divide its control group", bound: limit}
		}
	}
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return cgroupParents{fault: err.Error()}
	}
	found := cgroupParents{v1: map[string]string{}}
	for line := range bytes.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(string(line)), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if parts[1] == "" {
			found.v2 = dividable(filepath.Join(cgroupRoot, parts[2]))
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			dir := filepath.Join(cgroupRoot, controller, parts[2])
			if (controller == "pids" || controller == "memory") && canMakeGroup(dir) {
				found.v1[controller] = dir
			}
		}
	}
	for _, dir := range found.v1 {
		sweep(dir)
	}
	if found.v2 == "" && found.v1["pids"] == "" {
		found.fault = "no control group of this process with a pids controller can be written"
	}
	return found
})

// groupVariable tells a process that a Thread has started about its control group, since it may not look for it. What it
// says is checked.
const groupVariable = "HOZO_CGROUP"

// limitOf returns the number of processes to which a group bounds a process, "" if it is no member or not bounded.
func limitOf(dir string, pid int) string {
	members, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil || !hasWord(string(members), strconv.Itoa(pid)) {
		return ""
	}
	limit, err := os.ReadFile(filepath.Join(dir, "pids.max"))
	if err != nil || strings.HasPrefix(string(limit), "max") {
		return ""
	}
	return strings.TrimSpace(string(limit))
}

// sweep removes the groups of processes that were killed before they could. A group that is in use has a member and stays.
func sweep(parent string) {
	groups, err := filepath.Glob(filepath.Join(parent, groupPrefix+"*"))
	if err != nil {
		return // the pattern is sound, so this cannot be
	}
	for _, dir := range groups {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), groupPrefix), "-")
		if pid, err := strconv.Atoi(owner); err == nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			_ = unix.Rmdir(dir)
		}
	}
}

// groupPrefix begins the names of groups; the number of the process and one of the group follow.
const groupPrefix = "hozo-"

// canMakeGroup tries it: what the file system seems to permit, another layer may refuse.
func canMakeGroup(parent string) bool {
	dir := filepath.Join(parent, groupPrefix+strconv.Itoa(os.Getpid())+"-0")
	if unix.Mkdir(dir, 0o755) != nil {
		return false
	}
	return unix.Rmdir(dir) == nil
}

// dividable returns dir if groups that are made in it have a pids controller.
func dividable(dir string) string {
	if !canMakeGroup(dir) {
		return ""
	}
	controllers, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil || !hasWord(string(controllers), "pids") {
		return ""
	}
	return dir
}

func hasWord(text, word string) bool {
	for w := range strings.FieldsSeq(text) {
		if w == word {
			return true
		}
	}
	return false
}

var groupNumber atomic.Int64

// newControlGroup makes a group with these limits, nil if this process may not make any.
func newControlGroup(l Limits) (*controlGroup, error) {
	parents := findCgroups()
	if parents.fault != "" {
		return nil, nil
	}
	name := fmt.Sprintf("%s%d-%d", groupPrefix, os.Getpid(), groupNumber.Add(1))
	g := &controlGroup{}
	if err := g.build(parents, name, l); err != nil {
		g.close()
		return nil, fmt.Errorf("make a control group: %w", err)
	}
	return g, nil
}

func (g *controlGroup) build(parents cgroupParents, name string, l Limits) error {
	if parents.v2 == "" {
		if err := g.make(filepath.Join(parents.v1["pids"], name), "pids.max", l.Processes); err != nil {
			return err
		}
		if dir := parents.v1["memory"]; dir != "" {
			return g.make(filepath.Join(dir, name), "memory.limit_in_bytes", l.MemoryBytes)
		}
		return nil
	}
	dir := filepath.Join(parents.v2, name)
	if err := g.make(dir, "pids.max", l.Processes); err != nil {
		return err
	}
	// The memory controller may be absent where that of processes is not.
	if err := bound(dir, "memory.max", l.MemoryBytes); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var err error
	g.v2, err = os.Open(dir)
	return err
}

func (g *controlGroup) make(dir, file string, limit int64) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	g.dirs = append(g.dirs, dir)
	return bound(dir, file, limit)
}

func bound(dir, file string, limit int64) error {
	if limit < 0 {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, file), strconv.AppendInt(nil, limit, 10), 0o644)
}

// directories returns where the group is, that with the number of processes first.
func (g *controlGroup) directories() []string {
	if g == nil {
		return nil
	}
	return g.dirs
}

// enter makes the calling thread a member, in version 1.
func (g *controlGroup) enter() error {
	if g == nil || g.v2 != nil {
		return nil
	}
	for _, dir := range g.dirs {
		if err := bound(dir, "tasks", int64(unix.Gettid())); err != nil {
			return fmt.Errorf("enter the control group: %w", err)
		}
	}
	return nil
}

// begin makes a child begin in the group, in version 2.
func (g *controlGroup) begin(attributes *syscall.SysProcAttr) {
	if g != nil && g.v2 != nil {
		attributes.UseCgroupFD, attributes.CgroupFD = true, int(g.v2.Fd())
	}
}

// close ends what is still in the group and removes it.
func (g *controlGroup) close() {
	if g == nil {
		return
	}
	if g.v2 != nil {
		// Kernels before 5.14 have no such file; the namespaces end the processes there.
		_ = bound(g.dirs[0], "cgroup.kill", 1)
		g.v2.Close()
	}
	for _, dir := range g.dirs {
		removeGroup(dir)
	}
}

// removeGroup removes a group whose processes have been reaped. The kernel counts a process or thread as a member until
// its last instruction, some microseconds after it could be waited for.
func removeGroup(dir string) {
	for pause := 50 * time.Microsecond; pause < 100*time.Millisecond; pause *= 2 {
		if err := unix.Rmdir(dir); !errors.Is(err, unix.EBUSY) {
			return
		}
		time.Sleep(pause)
	}
	// A group that something else has entered meanwhile is left to whoever owns its parent.
}
