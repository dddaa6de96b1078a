// Package awsenv reads the standard variables that describe a process's AWS account: region, endpoints and credentials. It
// replaces the SDK's config module, which adds 2 MB to a function. [Connect] completes it by connections and retries for one service.
//
// It imports the SDK's core and its credential providers.
package awsenv
