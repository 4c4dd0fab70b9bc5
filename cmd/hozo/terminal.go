package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminalWidth returns the number of columns of the terminal behind w, and whether there is one.
func terminalWidth(w any) (int, bool) {
	f, ok := w.(*os.File)
	if !ok {
		return 0, false
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	if size.Col == 0 {
		return 80, true // a terminal that does not say
	}
	return int(size.Col), true
}
