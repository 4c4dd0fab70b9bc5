//go:build !race

package mcptool_test

const raceEnabled = false
