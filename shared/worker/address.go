package worker

import (
	"fmt"
	"net/netip"
	"syscall"
)

// onlyPublic refuses to connect to an address that is not public. A dialer calls it with the resolved address that it is
// about to connect to, so that a second lookup cannot give another.
func onlyPublic(_, address string, _ syscall.RawConn) error {
	place, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("worker: the address %q cannot be read: %w", address, err)
	}
	if !public(place.Addr()) {
		return fmt.Errorf("worker: the address %s is not public, and targets.allow_private does not allow it", place.Addr())
	}
	return nil
}

// public reports whether an address is one of the public internet.
func public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() { // loopback, link-local, multicast, unspecified and broadcast are not global
		return false
	}
	for _, prefix := range special {
		if prefix.Contains(a) {
			return false
		}
	}
	return true
}

// special are further blocks that are not public, or hold an IPv4 address inside an IPv6 one (IANA's special-purpose address
// registries, RFC 6890).
var special = [...]netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"), // shared by customers of a carrier; some clouds' metadata
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"), // IPv4-compatible
	netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001::/23"), // Teredo and others
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), // 6to4
	netip.MustParsePrefix("3fff::/20"),
	netip.MustParsePrefix("5f00::/16"),
	netip.MustParsePrefix("fec0::/10"), // site-local
}
