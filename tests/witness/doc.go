// Package witness remembers what a journal acknowledged and judges what followers saw of it: it checks the invariants rising ids,
// complete followers and acknowledged once (docs/invariants.md) from outside.
package witness
