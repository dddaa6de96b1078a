package gateway

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"go.yaml.in/yaml/v3"
)

// Options of a gateway. All are required.
type Options struct {
	Template  string                         // path of template.yaml
	Programs  string                         // folder with the functions' programs, by their names
	Instances int                            // of each function: requests go to one after the other
	Env       func(function string) []string // returns the environment of a function's instances
}

// Gateway is a running one. An instance is started by the first request that goes to it.
type Gateway struct {
	URL string // where it listens

	t         testing.TB
	o         Options
	routes    Routes
	functions map[string]*function // by their names
}

// Routes lead to functions.
type Routes []route

// route leads to one.
type route struct {
	method   string // ANY: each
	segments []string
	function string
}

// Start starts a gateway, which ends with the test.
func Start(t testing.TB, o Options) *Gateway {
	t.Helper()
	g := &Gateway{t: t, o: o, routes: ReadRoutes(t, o.Template), functions: make(map[string]*function)}
	for _, r := range g.routes {
		if g.functions[r.function] == nil {
			g.functions[r.function] = newFunction(t, o, r.function)
		}
	}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	g.URL = server.URL
	return g
}

// ReadRoutes returns the routes of a template; $default is one of any path.
func ReadRoutes(t testing.TB, path string) (all Routes) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var template struct {
		Resources map[string]yaml.Node `yaml:"Resources"`
	}
	if err := yaml.Unmarshal(text, &template); err != nil {
		t.Fatal(err)
	}
	for _, node := range template.Resources {
		var resource struct {
			Properties struct {
				CodeURI string `yaml:"CodeUri"`
				Events  map[string]struct {
					Type       string `yaml:"Type"`
					Properties struct {
						Method string `yaml:"Method"`
						Path   string `yaml:"Path"`
					} `yaml:"Properties"`
				} `yaml:"Events"`
			} `yaml:"Properties"`
		}
		if node.Decode(&resource) != nil {
			continue // it is no function
		}
		for _, e := range resource.Properties.Events {
			if e.Type != "HttpApi" {
				continue
			}
			name := strings.Trim(strings.TrimPrefix(resource.Properties.CodeURI, "functions/"), "/")
			r := route{method: "ANY", segments: []string{greedy}, function: name}
			if e.Properties.Path != "" {
				r.method, r.segments = e.Properties.Method, strings.Split(e.Properties.Path[1:], "/")
			}
			all = append(all, r)
		}
	}
	return all
}

// greedy is the segment that takes the rest of a path.
const greedy = "{proxy+}"

// fits returns how well the route fits a request: of two that fit, the greater is taken. "" is none.
func (r *route) fits(method string, path []string) (how string) {
	if r.method != "ANY" && r.method != method {
		return ""
	}
	for i, segment := range r.segments {
		switch {
		case segment == greedy:
			return how + "1" + r.method
		case i >= len(path):
			return ""
		case strings.HasPrefix(segment, "{"):
			how += "2"
		case segment == path[i]:
			how += "3"
		default:
			return ""
		}
	}
	if len(path) > len(r.segments) {
		return ""
	}
	if r.method != "ANY" {
		how += "4"
	}
	return how + "3"
}

// Function returns the name of the function that takes a request, which is its folder's; "" if none does. The path is unescaped.
func (all Routes) Function(method, path string) string {
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	best, to := "", ""
	for i := range all {
		if how := all[i].fits(method, segments); how > best {
			best, to = how, all[i].function
		}
	}
	return to
}

// ServeHTTP hands a request to its function.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	payload, err := payloadOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := g.functions[g.routes.Function(r.Method, r.URL.Path)].invoke(r.Context(), payload)
	var out events.APIGatewayV2HTTPResponse
	if err == nil {
		err = json.Unmarshal(answer, &out)
	}
	body := []byte(out.Body)
	if err == nil && out.IsBase64Encoded {
		body, err = base64.StdEncoding.DecodeString(out.Body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	for name, value := range out.Headers {
		w.Header().Set(name, value)
	}
	for _, cookie := range out.Cookies {
		w.Header().Add("Set-Cookie", cookie)
	}
	w.WriteHeader(out.StatusCode)
	_, _ = w.Write(body) // the client has left; there is nobody to tell
}

// payloadOf returns a request as a payload of format 2.0.
func payloadOf(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	in := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RawPath: r.URL.Path, RawQueryString: r.URL.RawQuery, Body: base64.StdEncoding.EncodeToString(body), IsBase64Encoded: true,
		Headers: map[string]string{"host": r.Host, "x-forwarded-proto": "https"},
	}
	for name, values := range r.Header {
		if name == "Cookie" {
			in.Cookies = strings.Split(strings.Join(values, "; "), "; ")
			continue
		}
		in.Headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	in.RequestContext.Stage = "$default"
	in.RequestContext.HTTP.Method, in.RequestContext.HTTP.Path = r.Method, r.URL.Path
	in.RequestContext.HTTP.SourceIP, _, err = net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return nil, err
	}
	return json.Marshal(in)
}
