package mcptool

import (
	"context"
	"net"
	"net/netip"
	"strings"
)

// SetDial replaces the dialer, for tests without a network.
func (c *Config) SetDial(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	c.dial = dial
}

// What tests look at from inside.
var (
	CheckAddress = func(a netip.Addr, private bool) error { return checkAddress(a, private) }
	ShownName    = shownName
	AssignNames  = assignNames
	CutMiddle    = cutMiddle
	Clean        = clean
	Visible      = visible
	MaxText      = maxText
	ClosedList   = closedPrefixes
	PrivateList  = privatePrefixes
	ImageSize    = imageSize
)

// FitSchema returns the schema to declare as text.
func FitSchema(listed any) (string, error) {
	raw, _, err := fitSchema(listed)
	return string(raw), err
}

// DialerFor is the dialer that a configuration gets.
func DialerFor(allowPrivate bool) func(ctx context.Context, network, address string) (net.Conn, error) {
	return newDialer(allowPrivate).DialContext
}

// DialerTo leads every connection to one address.
func DialerTo(address string) func(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, _ := strings.Cut(address, "/")
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, host)
	}
}
