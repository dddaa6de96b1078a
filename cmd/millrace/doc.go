// Command millrace is the server and its clients in one program.
//
//	serve, dev                the server, everything in one process; dev to try things out
//	tables                    create the tables of a store in PostgreSQL, on DynamoDB Local or LocalStack
//	check                     examine a server, or the data directory of a stopped one
//	dump, secret              what a store holds: of a task; what tasks that are sent by HTTP are signed with
//	emit, follow, snapshot    the journal
//	apply, cron, schedule     definitions, expressions and what fires by them
//	task, job, queue, dlq     work: add it, look at it, act on it
//	order, act                orders of job chains; acts on many orders or jobs
//	chain                     job chains: draw them, stop and start them
//	rule                      pause and block handlers
//	worker, instance          run work anywhere, and see the processes that do
//	stream, consumer          streams and how far their consumers are
//	mcp                       tools for assistants
//	bench                     measure the journal, tasks and streams
//	version                   which build this is
//
// Exit status: 0 ok, 1 failed, 2 usage, 3 not found, 4 conflict, 5 not allowed.
package main
