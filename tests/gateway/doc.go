// Package gateway stands in for API Gateway and Lambda: it takes requests by the routes of template.yaml, and hands each to an instance of its
// function, a process, by Lambda's runtime API, as a payload of an HTTP API. As API Gateway does, it unescapes paths, sets cookies apart, and
// says that the connection was encrypted.
//
//	gateway.go  which function takes a request, and the payload that it becomes
//	lambda.go   a function's instances, and how they are invoked
package gateway
