// Package host runs one function wherever it finds itself: on AWS Lambda, or as a plain HTTP service in any container.
//
// A [Function] is an http.Handler, a tick and a batch of messages; it does not know its host. [Main] looks at the
// environment: with AWS_LAMBDA_RUNTIME_API set it serves Lambda invocations (HTTP API payloads 2.0, SQS batches,
// EventBridge schedules), otherwise it listens on $PORT, where the same triggers arrive as CloudEvents over HTTP.
//
// It imports the standard library and aws-lambda-go, and nothing of what the functions do: no store, no journal.
package host
