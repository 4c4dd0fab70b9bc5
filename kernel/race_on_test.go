//go:build race

package kernel_test

// cutStep is how many frames lie between two cuts. The race detector makes a cut ten times as slow and finds in every
// third of them what it finds in all; the tests without it, which "make ring" runs, cut everywhere.
const cutStep = 3
