// Package host runs one function in any environment: on AWS Lambda, or as a plain HTTP service in any container.
//
// A [Function] is an http.Handler, a tick and a batch of messages; it does not know its host. [Main] reads the
// environment: with AWS_LAMBDA_RUNTIME_API set it serves Lambda invocations (HTTP API payloads 2.0, SQS batches,
// EventBridge schedules); otherwise it listens on $PORT, where the same triggers arrive as CloudEvents over HTTP.
//
// It imports the standard library, aws-lambda-go and metric, and no other of Millrace's packages.
package host
