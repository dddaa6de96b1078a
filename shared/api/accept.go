package api

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// preferred returns which of the offered media types the client wants most by its Accept headers (RFC 9110, 12.5.1):
// the one of the highest quality, the earlier offer where several are wanted alike. A client that wants none of them,
// or says nothing, gets the first.
func preferred(h http.Header, offers ...string) string {
	values := h["Accept"]
	if len(values) == 0 || len(values) == 1 && (values[0] == "*/*" || values[0] == offers[0]) {
		return offers[0]
	}
	ranges := mediaRanges(values)
	best, most := offers[0], 0.0
	for _, offer := range offers {
		if q := quality(ranges, offer); q > most {
			best, most = offer, q
		}
	}
	return best
}

// mediaRange is one element of Accept: a type, type/* or */*, and how much it is wanted, 0 to 1.
type mediaRange struct {
	pattern string
	q       float64
}

func mediaRanges(values []string) []mediaRange {
	var ranges []mediaRange
	for _, value := range values {
		for element := range strings.SplitSeq(value, ",") {
			if pattern, params, err := mime.ParseMediaType(element); err == nil {
				ranges = append(ranges, mediaRange{pattern, qOf(params)})
			}
		}
	}
	return ranges
}

// qOf returns the weight; one that is missing or malformed counts as 1.
func qOf(params map[string]string) float64 {
	text, given := params["q"]
	if q, err := strconv.ParseFloat(text, 64); given && err == nil && q >= 0 && q <= 1 {
		return q
	}
	return 1
}

// quality returns the weight of the most specific range that matches the offer, 0 if none does.
func quality(ranges []mediaRange, offer string) float64 {
	family, _, _ := strings.Cut(offer, "/")
	for _, pattern := range []string{offer, family + "/*", "*/*"} {
		for _, r := range ranges {
			if r.pattern == pattern {
				return r.q
			}
		}
	}
	return 0
}
