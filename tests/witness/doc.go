// Package witness remembers what a journal acknowledged and reckons up what followers saw of it: I1, I2 and I3 of the
// design, from outside.
package witness
