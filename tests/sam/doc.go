// Package sam builds the functions with the SAM CLI and runs them as it does: in Lambda's own runtime environment, in
// containers, behind its imitation of API Gateway, on tables and a queue in LocalStack.
//
// Its tests run where MILLRACE_TEST_SAM is set, as scripts/test does where it finds Docker and Python.
package sam
