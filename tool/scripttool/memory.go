//go:build !race

package scripttool

// The bounds of the child as a whole, behind that of the engine's heap. A Go program reserves more than a gigabyte of
// addresses and uses little of it, so the bound of data is the one that counts.
const (
	addressBytes = 4 << 30
	dataBytes    = 400 << 20
)
