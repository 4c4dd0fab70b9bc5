package sandbox

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// confinement is what a thread puts on itself: the prepared form of a Policy.
type confinement struct {
	rules            *ruleset      // nil: no Landlock
	calls            filter        // nil: no filter
	group            *controlGroup // nil: no control group
	dropCapabilities bool
	asks             bool        // the filter has a supervisor answer
	roots            []*os.File  // what a supervisor may change; they belong to the starter
	supervisor       *supervisor // nil: the filter does not ask
}

// prepare does whatever needs the rights that the thread will not have any more. A layer that this machine lacks is left
// out: Probe reports it.
func prepare(p *Policy) (*confinement, error) {
	c := &confinement{}
	if p.uses(layerCgroup) {
		group, err := newControlGroup(p.Limits.withDefaults())
		if err != nil {
			return nil, err
		}
		c.group = group
	}
	if p.Unconfined {
		return c, nil
	}
	c.dropCapabilities = p.uses(layerCapabilities)
	if p.uses(layerLandlock) && landlockABI() > 0 {
		rules, err := newRuleset(p)
		if err != nil {
			c.close()
			return nil, err
		}
		c.rules = rules
		if p.showsGroup {
			for _, dir := range c.group.directories() {
				if err := rules.allow(dir, rightsRead); err != nil {
					c.close()
					return nil, err
				}
			}
		}
	}
	if p.uses(layerSeccomp) && seccompAvailable() {
		c.calls, c.asks = newFilter(p), p.changes == changesAsked
	}
	return c, nil
}

func (c *confinement) close() {
	if c.rules != nil {
		c.rules.close()
	}
	c.supervisor.close()
	c.group.close()
}

// enter confines the calling thread for good. The order matters: without no-new-privs the kernel permits neither rules
// nor filters to an ordinary process, and the filter comes last because it could refuse the other steps.
func (c *confinement) enter() error {
	if err := c.group.enter(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no-new-privs: %w", err)
	}
	if c.rules != nil {
		if err := c.rules.apply(); err != nil {
			return err
		}
	}
	if c.dropCapabilities {
		if err := dropCapabilities(); err != nil {
			return err
		}
	}
	switch {
	case c.calls == nil:
		return nil
	case !c.asks:
		return c.calls.apply()
	}
	listener, err := c.calls.listen()
	if err != nil {
		return err
	}
	c.supervisor, err = supervise(listener, c.roots)
	return err
}

// dropCapabilities takes all capabilities from the calling thread. With no-new-privs not even the superuser gets them
// back by starting a program.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

// onThreadOfItsOwn runs do on a thread that nothing else uses before, meanwhile or afterwards: it ends with do, and with
// it whatever do has done to it. The first thread of the process is never used, because the process is judged by it. New
// threads of the runtime are not made from such a thread and so inherit nothing.
//
// A process that do starts with a parent-death signal lives no longer than do.
func onThreadOfItsOwn(do func()) {
	go func() {
		runtime.LockOSThread() // and never unlock: the runtime then ends the thread with the goroutine
		if unix.Gettid() != unix.Getpid() {
			do()
			return
		}
		defer runtime.UnlockOSThread()
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread()
			do()
		}()
		<-done
	}()
}
