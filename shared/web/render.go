package web

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/act"
	"github.com/millrace/millrace/shared/api"
)

//go:embed templates
var sources embed.FS

// templates are one set for each page: the frame around it, and its own part.
var templates = parse()

func parse() map[string]*template.Template {
	all := make(map[string]*template.Template)
	files, err := sources.ReadDir("templates")
	if err != nil {
		panic(err) // it is embedded
	}
	for _, file := range files {
		name := strings.TrimSuffix(file.Name(), ".html")
		if name == "frame" {
			continue
		}
		t := template.New("frame.html").Funcs(template.FuncMap{
			"json": text, "line": line, "when": when, "id": eventTime, "path": url.PathEscape, "ofOrder": ofOrder, "orderActs": orderActs, "taskActs": taskActs, "fields": fields, "keyed": keyed, "long": long,
			"entries": entries, "mark": markOf, "states": api.JobTypes, "cut": cut, "plus": plus, "utc": utc, "micro": time.UnixMicro, "less": func(a, b int) int { return a - b }, "offers": func(...any) []button { return nil }, "select": func(...any) []button { return nil }, "permits": func(string) bool { return false },
		})
		all[name] = template.Must(t.ParseFS(sources, "templates/frame.html", "templates/"+file.Name()))
	}
	return all
}

// frame is what every page shows around its own part.
type frame struct {
	View  string // the template, and the entry of the navigation that is marked
	Title string
	Data  any
	Token *access.Token
	URL   string // of this page, for acts to come back to
	Live  bool   // it shows what changes by itself
	After int64  // EventId that it was read after, at least
	Each  int    // seconds after which it is read again though the journal has not grown

	Template string   // default: View
	Journey  *journey // to other moments; nil: there are none
}

// Past returns the EventId as of which the page is, "" for now.
func (f frame) Past() string {
	if f.Journey == nil {
		return ""
	}
	return f.Journey.At
}

// values returns the parameters of an act, names and values in turn, with where it comes back to.
func (f frame) values(parameters []any) url.Values {
	values := url.Values{"back": {f.URL}}
	for i := 0; i+1 < len(parameters); i += 2 {
		values.Set(fmt.Sprint(parameters[i]), fmt.Sprint(parameters[i+1]))
	}
	return values
}

// button leads to an act.
type button struct{ Label, URL string }

// offers returns the buttons of those acts that the role may do. The rest are the acts' parameters, names and values in turn.
func (d *Dashboard) offers(f frame) func(names string, parameters ...any) []button {
	return func(names string, parameters ...any) []button {
		if f.Token == nil || f.Past() != "" { // what is past cannot be changed
			return nil
		}
		values := f.values(parameters)
		var all []button
		for name := range strings.FieldsSeq(names) {
			a := act.Named(name)
			values.Set("do", name)
			if a != nil && d.permitted(f.Token, a, values) {
				all = append(all, button{Label: a.Label, URL: "/act?" + values.Encode()})
			}
		}
		return all
	}
}

// permits returns whether the role may do the act that has no parameters, on this page.
func (d *Dashboard) permits(f frame) func(name string) bool {
	offers := d.offers(f)
	return func(name string) bool { return len(offers(name)) > 0 }
}

// selects is offers of acts on many; the parameters are the filter.
func (d *Dashboard) selects(f frame) func(names string, parameters ...any) []button {
	return func(names string, parameters ...any) []button {
		if f.Past() != "" {
			return nil
		}
		values := f.values(parameters)
		var all []button
		for name := range strings.FieldsSeq(names) {
			values.Set("do", name)
			if m := act.ManyNamed(name); f.Token != nil && m != nil && d.api.Permits(f.Token.Role, http.MethodPost, m.Path) {
				all = append(all, button{Label: m.Label, URL: "/many?" + values.Encode()})
			}
		}
		return all
	}
}

// quiet is after how many seconds a page is read again though the journal has not grown: some of what pages show is not in it.
const quiet = 15

// show serves a page.
func (d *Dashboard) show(w http.ResponseWriter, r *http.Request, p page) {
	reads := reading{d: d, r: r, Data: make(map[string]any)}
	f := frame{View: p.view, Live: true, Each: quiet}
	if r.URL.Query().Get("at") != "" {
		reads.then(&p)
		f.Live, f.Template = false, pasts[p.view].view
	}
	if p.view == "acts" { // how far an act is, the journal does not tell
		f.Each = 1
	}
	f.Title = p.title
	newest := idOf(reads.one("limit=-1"))
	f.After = newest
	if reads.err == nil {
		p.read(&reads)
		f.Journey = reads.journey(p, newest)
	}
	if reads.err != nil {
		d.fail(w, r, reads.err)
		return
	}
	reads.Data["whole"] = r.URL.Query().Get("whole") != ""
	f.Data = reads.Data
	d.renderPage(w, r, http.StatusOK, f)
}

// fail serves a page that says what went wrong. What is no browser and has no session gets a problem, as from the API.
func (d *Dashboard) fail(w http.ResponseWriter, r *http.Request, err error) {
	refused := refuse(api.CodeInternal, "An unexpected failure; the log has more.")
	if !errors.As(err, &refused) {
		d.log.Error("a page failed", "path", r.URL.Path, "error", err)
	}
	if !isBrowser(r) && tokenOf(r) == nil {
		d.api.Refuse(w, r, refused.Code, refused.Detail)
		return
	}
	d.renderPage(w, r, refused.Status, frame{View: "failure", Title: http.StatusText(refused.Status), Data: refused})
}

func (d *Dashboard) renderPage(w http.ResponseWriter, r *http.Request, status int, f frame) {
	f.Token, f.URL = tokenOf(r), r.URL.RequestURI()
	if read, is := f.Data.(map[string]any); is {
		shown := make(map[string]any, len(read))
		for name, value := range read { // whose names are the page's own
			shown[name] = d.masks.hide(value)
		}
		f.Data = shown
	}
	d.render(w, status, cmp.Or(f.Template, f.View), f)
}

// render writes a page as a whole, or a failure if its template fails.
func (d *Dashboard) render(w http.ResponseWriter, status int, view string, data any) {
	t := template.Must(templates[view].Clone())
	if f, is := data.(frame); is {
		t.Funcs(template.FuncMap{"offers": d.offers(f), "select": d.selects(f), "permits": d.permits(f)})
	}
	var out bytes.Buffer
	if err := t.Execute(&out, data); err != nil {
		d.log.Error("a page could not be rendered", "view", view, "error", err)
		http.Error(w, "This page cannot be shown; the log has more.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = out.WriteTo(w) // the browser has left; there is nobody to tell
}

// text returns a value as JSON for people, a string as it is.
func text(value any) string {
	if s, is := value.(string); is {
		return s
	}
	return encode(value, "  ")
}

// line returns a value as JSON in one line, a string as it is.
func line(value any) string {
	if s, is := value.(string); is {
		return s
	}
	return encode(value, "")
}

// mostShown is how much of a text is shown where many stand below each other, in characters.
const mostShown = 300

// cut returns the beginning of a long text.
func cut(value any) string {
	all := []rune(line(value))
	if len(all) <= mostShown {
		return string(all)
	}
	return string(all[:mostShown]) + "…"
}

// mostLong is how much of a text is shown that stands alone, in characters, unless all of it is asked for.
const mostLong = 4000

// long returns a text and how much of it is left out.
func long(text string, whole any) (shown struct {
	Text string
	Left int
}) {
	shown.Text = text
	if all := []rune(text); len(all) > mostLong && whole != true {
		shown.Text, shown.Left = string(all[:mostLong]), len(all)-mostLong
	}
	return shown
}

// plus adds two counts of the API.
func plus(a, b any) int64 {
	x, _ := a.(json.Number)
	y, _ := b.(json.Number)
	n, _ := x.Int64() // 0 where there is none
	m, _ := y.Int64()
	return n + m
}

func encode(value any, indent string) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // the template does
	encoder.SetIndent("", indent)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprint(value)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// moment is a time with its distance from now.
type moment struct{ Exact, Relative string }

// when returns a time of the API for people.
func when(value any) moment {
	s, _ := value.(string)
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return moment{Exact: s, Relative: s}
	}
	return moment{Exact: s, Relative: relative(time.Since(t))}
}

// eventTime returns the time that an EventId tells: microseconds since 1970.
func eventTime(value any) moment { return when(utc(timeOf(value))) }

// timeOf is eventTime for whoever computes with it.
func timeOf(value any) time.Time {
	number, _ := value.(json.Number)
	id, _ := number.Int64() // 0 without an id
	return time.UnixMicro(id)
}

// utc returns a time as the API writes it.
func utc(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// relative returns a distance in time as a person says it.
func relative(d time.Duration) string {
	suffix, prefix := " ago", ""
	if d < 0 {
		d, suffix, prefix = -d, "", "in "
	}
	switch {
	case d < time.Second:
		return "now"
	case d < 2*time.Minute:
		return fmt.Sprintf("%s%d s%s", prefix, int(d.Seconds()), suffix)
	case d < 2*time.Hour:
		return fmt.Sprintf("%s%d min%s", prefix, int(d.Minutes()), suffix)
	case d < 48*time.Hour:
		return fmt.Sprintf("%s%d h%s", prefix, int(d.Hours()), suffix)
	}
	return fmt.Sprintf("%s%d days%s", prefix, int(d.Hours()/24), suffix)
}

// entry is one of the navigation.
type entry struct{ URL, View, Title, Key string }

// keys are the letters that lead to pages, after g.
var keys = map[string]string{
	"now": "n", "jobs": "j", "failures": "f", "queues": "q", "handlers": "h", "sources": "c", "schedules": "s", "orders": "o", "streams": "t",
	"instances": "i", "journal": "l", "audit": "a", "definitions": "d", "compare": "m",
}

// entries returns the navigation: every page whose address needs nothing filled in, of a moment of the past those that can show it.
func entries(at string) []entry {
	var all []entry
	for _, p := range navigation {
		to := strings.TrimSuffix(p.path, "{$}")
		if at != "" {
			to += "?at=" + url.QueryEscape(at)
		}
		if _, can := pasts[p.view]; can || at == "" {
			all = append(all, entry{URL: to, View: p.view, Title: p.title, Key: keys[p.view]})
		}
	}
	return all
}

// fields returns what an event says besides what every event has.
func fields(event map[string]any) string {
	rest := maps.Clone(event)
	for _, name := range []string{"eventId", "key", "TYPE", "cause", "by"} {
		delete(rest, name)
	}
	if len(rest) == 0 {
		return ""
	}
	return encode(rest, "")
}

// keyed reports whether an event's key names a task.
func keyed(key any) bool {
	members, _ := key.(map[string]any)
	return members["taskId"] != nil
}

// taskActs returns the acts that a task can take in its state: a sync task is canceled, others are stopped or removed.
func taskActs(job map[string]any) string {
	path, _ := job["job"].(string)
	ended, state := job["finished_at"] != nil, job["state"]
	switch sync := strings.HasPrefix(path, "/sources/"); {
	case ended && (state == "SUCCEEDED" || state == "SUCCESS"):
		return "job.remove"
	case ended:
		return "job.remove job.retry"
	case sync:
		return "task.cancel"
	}
	return "job.stop job.remove"
}

// orderActs returns the acts that an order in this state can take.
func orderActs(order map[string]any) string {
	possible := "order.suspend"
	obstacles, _ := order["obstacles"].([]any)
	for _, o := range obstacles {
		obstacle, _ := o.(map[string]any)
		switch obstacle["TYPE"] {
		case "Suspended":
			possible = "order.resume"
		case "Prompt":
			possible += " order.answer"
		}
	}
	return possible + " order.set-node order.skip order.reset order.run-now order.move order.remove"
}

// ofOrder returns the chain and the id of an order's path, /CHAIN,ORDER.
func ofOrder(path any) (parts struct{ Chain, ID string }) {
	s, _ := path.(string)
	parts.Chain, parts.ID, _ = strings.Cut(s, ",")
	return parts
}
