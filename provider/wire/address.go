package wire

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"sync"
	"syscall"

	"github.com/hozo-run/hozo/llm"
)

// closed are the addresses that no account may name: the metadata services of clouds, which hand out credentials to whoever
// asks, and link-local ones, where these are. Other private addresses are open: models are served on them.
var closed = sync.OnceValue(func() []netip.Prefix {
	var prefixes []netip.Prefix
	for _, text := range []string{
		"169.254.0.0/16",     // link-local, metadata of most clouds
		"100.100.100.200/32", // metadata of Alibaba Cloud
		"168.63.129.16/32",   // host agent of Azure
		"192.0.0.192/32",     // metadata of Oracle Cloud
		"fe80::/10",          // link-local
		"fd00:ec2::/32",      // metadata of AWS
		"fd20:ce::254/128",   // metadata of Google Cloud
		"fd00:42::42/128",    // metadata of Scaleway
	} {
		prefixes = append(prefixes, netip.MustParsePrefix(text))
	}
	return prefixes
})

// checkDial refuses a connection to a closed address. It is asked about the address that is dialled, after the name was
// resolved, so a name that leads there does not help.
func checkDial(_, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil || !isClosed(target.Addr()) {
		return nil
	}
	return &llm.Error{Class: llm.ClassInvalidRequest, Final: true,
		Message: "the address of the API is link-local or a metadata service; it is always refused"}
}

// isClosed looks through the IPv6 forms of an IPv4 address: mapped, NAT64 (RFC 6052) and 6to4 (RFC 3056).
func isClosed(address netip.Addr) bool {
	address = address.WithZone("").Unmap()
	if address.Is6() {
		b := address.As16()
		switch {
		case binary.BigEndian.Uint64(b[:8]) == 0x0064ff9b_00000000 && binary.BigEndian.Uint32(b[8:]) == 0:
			address = netip.AddrFrom4([4]byte(b[12:]))
		case b[0] == 0x20 && b[1] == 0x02:
			address = netip.AddrFrom4([4]byte(b[2:6]))
		}
	}
	return slices.ContainsFunc(closed(), func(p netip.Prefix) bool { return p.Contains(address) })
}
