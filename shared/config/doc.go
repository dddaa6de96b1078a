// Package config reads what operators say: environment variables and the file millrace.yaml, both strictly. Every mistake
// is reported with its place and what would be right, all of them at once.
//
//	MILLRACE_STORE        where the data is: pebble:DIR or dynamodb:PREFIX
//	MILLRACE_BELL         how workers are woken: local (default, where there is one process) or sqs:QUEUE
//	MILLRACE_ADMIN_TOKEN  the secret of the token named admin
//	MILLRACE_TOKENS       more tokens, as the list under tokens in the file
//	MILLRACE_CONFIG       path of millrace.yaml; or its text, where that begins with {, for hosts without files
//	MILLRACE_LOG          debug, info (default), warn or error
//	MILLRACE_DRAIN        how long a stop may take in all; default 8s
//	MILLRACE_WORKERS      how many tasks a process runs at once, where it runs any; default 16
//
// The file has these sections, all of them optional:
//
//	tokens: [{name: ci, role: producer, sha256: HEX}]
//	journal: {retention: {events: 1000000, age: 7d}}
//	history: {age: 90d}
//	targets: {allow_private: false}
//	metrics: {open: false}
//	drain: 8s
//
// and those that package definition describes: sources, handlers, jobs, queues, schedules, job_chains, lease.
//
// The package imports api (for roles), bell, definition, document, event (for durations) and store. It opens both by what it is handed, so that a
// program links only the backends that its main names.
package config
