package hostserver_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestNoProcessOfAJobInheritsTheHost(t *testing.T) {
	t.Parallel()
	for kind, connection := range bothKinds() {
		h, _ := startChild(t, newOffice(), connection, step{"descriptors", ""}, step{"web_search", `{"query":"a"}`})
		texts := said(h)
		if len(texts) != 2 || !strings.Contains(texts[0], "0 /dev/null") || strings.Contains(texts[0], "socket:") || !strings.HasPrefix(texts[1], "error=false") {
			t.Errorf("%s: %q", kind, texts)
		}
		h.Wait()
	}
}

func TestAKilledHostTakesTheJobProcessAlong(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self)
	parent.Args = []string{"hozo", "parent"}
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(bufio.NewReader(out), &pid); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := parent.Wait(); err == nil {
		t.Error("the parent was not killed")
	}
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 20_000)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			t.Fatalf("process %d is still there after 20 s (%v)", pid, err)
		}
		return
	}
}
