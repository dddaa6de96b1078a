// Package containers starts what tests need in containers: LocalStack, and in it DynamoDB and SQS.
//
// A test package that uses it says so in its TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(containers.Run(m)) }
//
// There is one container for each test process, started by the first test that asks. Scripts that test many packages
// start one themselves and name its endpoint in MILLRACE_TEST_DYNAMODB; tests then start none. Those of SQS use it too, so
// that it must be a LocalStack.
//
// Without a Docker engine the tests that need one are left out, saying so, except in continuous integration (CI=true),
// where they fail. MILLRACE_TEST_LEFT_OUT may name a file to which each of them adds a line.
package containers
