package sandbox

import (
	"os"
	"os/signal"
	"syscall"
)

// unignoreSignals gives the signals that this process ignores a handler that drops them. For this process that is the same;
// but what is ignored stays ignored across exec while what is handled does not, and a command that ignores SIGPIPE or
// SIGHUP because somebody above it did behaves in ways that its author does not expect.
func unignoreSignals() {
	dropped := make(chan os.Signal, 1) // nobody reads it: what does not fit is dropped
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGTERM,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU} {
		if signal.Ignored(s) {
			signal.Notify(dropped, s)
		}
	}
}
