package sandbox

import (
	"os/signal"
	"syscall"
	"testing"
)

func TestCommandsIgnoreNoSignalThatThisProcessIgnores(t *testing.T) {
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGUSR1)
	t.Cleanup(func() { signal.Reset(syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGUSR1) })
	dir := realTemp(t)
	for name, off := range map[string]layer{"direct": 0, "behind a shim": layerNamespaces} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Policy{Write: []string{dir}, without: off})
			if r := run(t, s, bash(dir, "trap; yes | head -1")); string(r.Output) != "y\n" {
				t.Errorf("output: %q", r.Output)
			}
		})
	}
}
