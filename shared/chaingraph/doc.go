// Package chaingraph draws job chains, for people: as text, and for Mermaid, which many pages and editors show as a picture.
//
//	text.go     the nodes in their order, each with the ways from it
//	mermaid.go  a flowchart
//	way.go      what both say of a node
//
// It has no input or output. It imports definition and event (for durations).
package chaingraph
