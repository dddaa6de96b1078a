package web

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// visitorOf returns the address that a request is from. Behind proxies, it is the last one of X-Forwarded-For that is no proxy's: anyone can
// write the header, so it counts only as far as it comes from a proxy that is known. On Lambda the request has the address that the gateway saw.
func visitorOf(r *http.Request, proxies []netip.Prefix) string {
	visitor, known := addressIn(r.RemoteAddr)
	if !known {
		return r.RemoteAddr
	}
	isProxy := func(p netip.Prefix) bool { return p.Contains(visitor) }
	passed := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, text := range slices.Backward(passed) {
		before, known := addressIn(strings.TrimSpace(text))
		if !known || !slices.ContainsFunc(proxies, isProxy) {
			break
		}
		visitor = before
	}
	return visitor.String()
}

// addressIn returns the address in a text that may have a port too.
func addressIn(text string) (netip.Addr, bool) {
	if both, err := netip.ParseAddrPort(text); err == nil {
		return both.Addr().Unmap(), true
	}
	alone, err := netip.ParseAddr(text)
	return alone.Unmap(), err == nil
}
