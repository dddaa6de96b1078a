// Package cronbench measures looking for the next time beside other Go libraries, on expressions that all of them get
// right. It is a module of its own, so that the project depends on none of them: run it with
//
//	cd tests/cronbench && go test -bench .
package cronbench
