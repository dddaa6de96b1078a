// Package config reads the operator's settings: environment variables and the file millrace.yaml, both strictly. All
// mistakes are reported at once, each with its place and what would be right.
//
//	MILLRACE_STORE        where the data is: pebble:DIR or dynamodb:PREFIX
//	MILLRACE_BELL         how workers are notified: local (default, where there is one process), sqs:QUEUE, or postgres://HOST/DATABASE
//	                      (default, where the store is there)
//	MILLRACE_ADMIN_TOKEN  the secret of the token named admin
//	MILLRACE_TOKENS       more tokens, in the form of the list under tokens in the file
//	MILLRACE_SECRETS      tokens and the signing secret, where they may change while the process runs: file:PATH, or aws:ARN of a secret
//	                      in AWS Secrets Manager; YAML or JSON, {tokens: [...], signing_secret: whsec_...}, read again each minute
//	MILLRACE_SIGNING_SECRET  what tasks that are sent by HTTP are signed with, unless MILLRACE_SECRETS says it; default: one that is made
//	MILLRACE_URL          where clients and targets find the API; tasks that are sent by HTTP name it for reports
//	MILLRACE_CONFIG       path of millrace.yaml; or its text, if that begins with {, for hosts without files
//	MILLRACE_LOG          debug, info (default), warn or error
//	MILLRACE_DRAIN        how long a stop may take in all, more than 0; default 8s
//	MILLRACE_WORKERS      how many tasks a process runs at once, if it runs any; 1 to 10000, default 16
//
// The file has these sections, all of them optional:
//
//	tokens: [{name: ci, role: producer, sha256: HEX}]
//	journal: {retention: {events: 1000000, age: 7d}}
//	history: {age: 90d}
//	targets: {allow_private: false}
//	metrics: {open: false}
//	dashboard: {mask: [password]}
//	cors: {origins: [https://app.example]}
//	drain: 8s
//
// and those that package definition describes: sources, handlers, jobs, queues, schedules, job_chains, locks, file_orders, lease.
//
// The package imports access (for tokens), awsenv (for secrets), notifier, definition, strict, event (for durations) and store. It opens stores and
// notifiers with functions from its caller, so that a program links only the backends that its main names.
package config
