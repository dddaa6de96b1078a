// Package mcp offers a running server's API as tools of the Model Context Protocol, so that an assistant can see what is there, say why
// something does not run, and act. What a tool may do is what the token may.
//
//	mcp.go     the server of the protocol, and its requests to the API
//	reads.go   the table of what can be read
//	tools.go   tools from the tables of reads and of acts
//
// It imports act.
package mcp
