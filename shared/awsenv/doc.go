// Package awsenv reads the standard variables by which processes are told of an AWS account: region, endpoints and
// credentials. It stands in for the SDK's config module, which costs a function 2 MB.
//
// Client is the HTTP client that its programs hand the SDK.
//
// It imports the SDK's core and its credential providers.
package awsenv
