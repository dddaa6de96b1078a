// Package architecture holds the rules about what may import what, and about what must not be in the tree, as tests.
package architecture
