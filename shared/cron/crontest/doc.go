// Package crontest makes random cron expressions, each with independent predicates of what it means, which follow the
// language's definitions, slowly and without any of package cron's code. It is for tests. It imports only the standard
// library.
package crontest
