// Package postgres starts PostgreSQL for tests.
//
// A test package that uses it says so in its TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(postgres.Run(m)) }
//
// There is one instance for each test process, started by the first test that asks, with a database for each test. Tests that break
// their instance have one of their own. All of them listen on a socket in a temporary directory, and nowhere else but those of
// [OwnEncrypted], and write as safely as PostgreSQL does by default.
//
// Without PostgreSQL's programs the tests that need them are left out, saying so, except in continuous integration (CI=true), where
// they fail. MILLRACE_TEST_LEFT_OUT may name a file to which each of them adds a line. The same holds for PgBouncer, which is put before
// a database by [Behind].
package postgres
