// Package access says who may come in: tokens, of which only hashes are kept, and the roles that they give. What each role may do
// is said in package api, where the operations are.
//
// The package imports only the standard library.
package access
