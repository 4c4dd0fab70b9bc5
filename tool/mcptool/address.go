package mcptool

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// The prefixes that a connection may not reach. Closed ones hold the metadata services of clouds, which hand out
// credentials to whoever asks, and addresses that name no single machine; nothing opens them. Private ones are opened by
// Config.AllowPrivate.
var (
	closedPrefixes = prefixesOnce(
		"0.0.0.0/8",          // this host, whatever that is
		"169.254.0.0/16",     // link-local, metadata of most clouds
		"100.100.100.200/32", // metadata of Alibaba Cloud
		"168.63.129.16/32",   // host agent of Azure
		"192.0.0.192/32",     // metadata of Oracle Cloud
		"224.0.0.0/4",        // multicast
		"240.0.0.0/4",        // reserved, broadcast
		"::/128",             // unspecified
		"fe80::/10",          // link-local
		"fd00:ec2::/32",      // metadata and time of AWS
		"fd20:ce::254/128",   // metadata of Google Cloud
		"fd00:42::42/128",    // metadata of Scaleway
		"ff00::/8",           // multicast
		"2001::/32",          // Teredo: the address inside is hidden
	)
	privatePrefixes = prefixesOnce(
		"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", // private
		"127.0.0.0/8", "::1/128", // loopback
		"100.64.0.0/10",                                     // shared by carriers
		"192.0.0.0/24",                                      // protocol assignments
		"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", // documentation
		"192.88.99.0/24", // relays of 6to4
		"198.18.0.0/15",  // benchmarks
		"fc00::/7",       // unique local
		"fec0::/10",      // site-local
		"64:ff9b:1::/48", // local NAT64
		"100::/64",       // discard
		"2001:db8::/32",  // documentation
		"3fff::/20",      // documentation
		"5f00::/16",      // segment routing
	)
)

// prefixesOnce parses at the first use.
func prefixesOnce(texts ...string) func() []netip.Prefix {
	return sync.OnceValue(func() []netip.Prefix {
		prefixes := make([]netip.Prefix, len(texts))
		for i, text := range texts {
			prefixes[i] = netip.MustParsePrefix(text)
		}
		return prefixes
	})
}

// addressError is the refusal of the dialer.
type addressError struct{ kind string }

func (e *addressError) Error() string { return "the address is " + e.kind }

// checkAddress returns nil if a connection to the address is allowed. An IPv4 address inside of an IPv6 one is what is
// judged, and must then be a public one: nobody writes a private address that way by accident.
func checkAddress(address netip.Addr, allowPrivate bool) error {
	address = address.WithZone("")
	if address.Is4In6() {
		address = address.Unmap()
	}
	if within(closedPrefixes(), address) {
		return &addressError{"link-local, a metadata service or reserved; it is always refused"}
	}
	if inner, ok := embedded(address); ok {
		if within(closedPrefixes(), inner) || within(privatePrefixes(), inner) {
			return &addressError{fmt.Sprintf("an IPv6 form of %s; it is always refused", inner)}
		}
		return nil
	}
	if !allowPrivate && within(privatePrefixes(), address) {
		return &addressError{"private or loopback, which this installation does not allow for MCP servers"}
	}
	return nil
}

func within(prefixes []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(address) })
}

// embedded returns the IPv4 address that an IPv6 address stands for: NAT64 (RFC 6052), 6to4 (RFC 3056), the IPv4-compatible
// form, and ISATAP interface identifiers (RFC 5214).
func embedded(address netip.Addr) (netip.Addr, bool) {
	if !address.Is6() {
		return netip.Addr{}, false
	}
	b := address.As16()
	last := netip.AddrFrom4([4]byte(b[12:]))
	switch high := binary.BigEndian.Uint64(b[:8]); {
	case high == 0x0064ff9b_00000000 && binary.BigEndian.Uint32(b[8:]) == 0:
		return last, true
	case high == 0 && binary.BigEndian.Uint32(b[8:]) == 0 && address != netip.IPv6Loopback():
		return last, true
	case b[0] == 0x20 && b[1] == 0x02:
		return netip.AddrFrom4([4]byte(b[2:6])), true
	case binary.BigEndian.Uint32(b[8:])&^0x02000000 == 0x00005efe:
		return last, true
	}
	return netip.Addr{}, false
}

// metadataHost reports whether a name stands for a metadata service in some cloud.
func metadataHost(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return slices.Contains([]string{"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal",
		"metadata.azure.internal", "metadata.platformequinix.com"}, host)
}

// checkHost judges the host of a URL as far as that is possible without resolving it.
func checkHost(host string, allowPrivate bool) error {
	if metadataHost(host) {
		return &addressError{"that of a metadata service; it is always refused"}
	}
	if address, err := netip.ParseAddr(host); err == nil {
		return checkAddress(address, allowPrivate)
	}
	if name := strings.ToLower(strings.TrimSuffix(host, ".")); !allowPrivate && (name == "localhost" || strings.HasSuffix(name, ".localhost")) {
		return &addressError{"private or loopback, which this installation does not allow for MCP servers"}
	}
	return nil
}

// numericHost reports whether a host is written as a number in one of the old ways that resolvers read differently.
func numericHost(host string) bool {
	last := host[strings.LastIndexByte(strings.TrimSuffix(host, "."), '.')+1:]
	last = strings.TrimSuffix(last, ".")
	if last == "" {
		return false
	}
	hex, isHex := strings.CutPrefix(strings.ToLower(last), "0x")
	for _, c := range []byte(hex) {
		if (c < '0' || c > '9') && (!isHex || c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
