// Package patient hides from a caller what it need not see of a store behind faults, by asking again where the port says
// that this is safe. What is left is what the port's contract promises, so that the conformance suite can be run on any
// backend behind a bad network. It is a test's tool: the product decides for itself what to ask again.
package patient
