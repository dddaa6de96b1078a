package web

import (
	"net/http"
	"net/url"
	"strings"
)

// slashed are the pages below which names may hold slashes. In their addresses these are escaped, but gateways unescape them: API Gateway's
// HTTP APIs hand a path over decoded.
var slashed = [...]string{"/schedules/", "/streams/", "/orders/", "/chains/"}

// joined returns the request with the slashes of a name escaped that came unescaped, one at its beginning too; the name is the shortest with
// which the path is a page's. Every other request it returns as it is.
func (d *Dashboard) joined(r *http.Request) *http.Request {
	path := r.URL.EscapedPath()
	if d.has(r) && !strings.Contains(path, "//") { // the mux would lead those to another path
		return r
	}
	for _, root := range slashed {
		rest, below := strings.CutPrefix(path, root)
		if !below {
			continue
		}
		parts := strings.Split(rest, "/")
		for n := 2; n <= len(parts); n++ {
			name := strings.Join(parts[:n], "%2F")
			try, err := at(r, root+strings.Join(append([]string{name}, parts[n:]...), "/"))
			if err == nil && parts[n-1] != "" && d.has(try) {
				return try
			}
		}
	}
	return r
}

// at returns the request with another path, which is escaped.
func at(r *http.Request, escaped string) (*http.Request, error) {
	path, err := url.PathUnescape(escaped)
	if err != nil {
		return nil, err
	}
	u := *r.URL
	u.Path, u.RawPath = path, escaped
	moved := r.WithContext(r.Context())
	moved.URL = &u
	return moved, nil
}
