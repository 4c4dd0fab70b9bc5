//go:build !race

package scripttool

// dataBytes bounds the memory of the child as a whole, behind the bound of the engine's heap.
const dataBytes = 400 << 20
