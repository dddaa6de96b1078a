// Package architecture holds the rules about what may import what, about what package comments say of files and imports, and
// about what must not be in the tree, as tests.
package architecture
