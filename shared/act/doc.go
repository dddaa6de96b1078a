// Package act is the table of what people may do to a running system, and what each act is as a request to the API. The dashboard and
// the tools of millrace mcp are made from it; a test holds the API and the command line to it.
//
//	act.go     what an act is, and its request
//	acts.go    the table of acts
//	many.go    the table of acts on all that a filter selects
//
// It imports nothing of Millrace.
package act
