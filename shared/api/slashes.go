package api

import (
	"net/http"
	"slices"
	"strings"
)

// slashed are the roots below which names may hold slashes. In a URL these are escaped, but gateways unescape them: API
// Gateway's HTTP APIs hand a path over decoded, and so does sam local start-api.
var slashed = [...]string{"/api/v1/schedules", "/api/v1/streams", "/api/v1/orders", "/api/v1/chains"}

// ofChains are the roots below which the path of a job chain follows, which begins with a slash.
var ofChains = [...]string{"/api/v1/orders//", "/api/v1/chains//"}

// begun returns the request with the slashes of a chain's path escaped that came unescaped, where the first one came too: so POST to the
// orders of /a/b is told from POST to an order, which no operation takes.
func (a *API) begun(r *http.Request) (begun *http.Request, ok bool) {
	path := r.URL.EscapedPath()
	if !slices.ContainsFunc(ofChains[:], func(root string) bool { return strings.HasPrefix(path, root) }) {
		return nil, false
	}
	return a.joined(r)
}

// joined returns the request with the slashes of a name escaped that came unescaped, all of them; the name is the shortest with which the
// path is an operation's. Slashes side by side, or at an end of the name, must come escaped, and so must those of a name that
// makes the path another operation's, as a stream's "a/events/b" does.
func (a *API) joined(r *http.Request) (joined *http.Request, ok bool) {
	for _, root := range slashed {
		rest, below := strings.CutPrefix(r.URL.EscapedPath(), root+"/")
		if !below {
			continue
		}
		parts := strings.Split(rest, "/")
		if strings.Contains(strings.ToUpper(parts[0]), "%2F") {
			continue // nobody has unescaped the name
		}
		for n := 2; n <= len(parts) && parts[n-1] != ""; n++ {
			name := strings.Join(parts[:n], "%2F")
			try, err := at(r, root+"/"+strings.Join(append([]string{name}, parts[n:]...), "/"))
			if err == nil && a.taken(try) {
				return try, true
			}
		}
	}
	return nil, false
}
