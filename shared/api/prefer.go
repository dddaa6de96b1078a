package api

import (
	"strings"
	"time"
)

// pausing is the preference of a client that comes back by itself, after pauses that grow while nothing happens, where the host would
// let it pay for waiting.
const pausing = "pause"

// maxWait is the longest that the request may wait. A client that prefers to pause is told where it need not wait at all, by the header
// Preference-Applied (RFC 7240, 3).
func (x *exchange) maxWait() time.Duration {
	if !x.api.waitsCost || !x.prefers(pausing) {
		return x.api.maxWait
	}
	x.Header().Set("Preference-Applied", pausing)
	return 0
}

// prefers reports whether the request has a preference (RFC 7240, 2).
func (x *exchange) prefers(preference string) bool {
	for _, line := range x.r.Header["Prefer"] {
		for one := range strings.SplitSeq(line, ",") {
			if name, _, _ := strings.Cut(one, ";"); strings.EqualFold(strings.TrimSpace(name), preference) {
				return true
			}
		}
	}
	return false
}
