// Package web is the dashboard: pages for people, rendered on the server. A page is a client of the API within the process: it
// shows what the operations return to the role of its session, and its acts are requests to them, so that pages and API have the
// same rights and the same rules.
//
//	web.go      the dashboard: which requests are its own, and the headers of each page
//	session.go  who is signed in: sessions in the store, under an opaque cookie
//	signin.go   signing in and out
//	visitor.go  from which address a request is, also behind proxies
//	attempts.go the limit on failed sign-ins
//	slashes.go  names whose slashes a gateway has unescaped
//	ask.go      requests to the API on behalf of a session
//	pages.go    the table of pages: path, title, and what each reads
//	first.go    the beginning of a long list
//	newest.go   the newest events of a kind, without reading a long journal
//	schedules.go what the pages of schedules read, and what changes of the clock do to ticks
//	orders.go   what the pages of orders and chains read
//	audit.go    who did what
//	live.go     tells open pages of changes
//	past.go     pages as they were at a moment
//	then.go     what the journal tells of a moment where there is no overview of it
//	compare.go  two moments side by side
//	timeline.go what happened to a task, and what led to an event
//	tally.go    how many objects there were at a moment
//	chart.go    attempts over time, as a picture
//	failures.go jobs that failed, by the kind of their failure
//	acts.go     acts: what each says before it is done, and doing it
//	search.go   jobs by their fields and properties
//	plan.go     what a change of the definitions would do, shown before it is done
//	many.go     acts on all that a page's filter selects: counted, confirmed, and watched
//	mask.go     values that no page shows
//	render.go   templates, and how times and numbers are shown
//
// With scripts off everything works but the updates of what changes meanwhile, for which pages ask again by htmx: when the journal
// has grown, of which they are told, or ask every few seconds where waiting costs the host.
//
// It imports access, act, api, chaingraph, cron, definition, event, journal, projection, store, task and task/failure.
package web
