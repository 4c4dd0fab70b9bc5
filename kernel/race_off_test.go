//go:build !race

package kernel_test

// cutStep is how many frames lie between two cuts: every place is one.
const cutStep = 1
