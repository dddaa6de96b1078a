// Command millrace is the server and its clients in one program.
//
//	millrace serve      the server, everything in one process
//	millrace dev        the same to try things out: a data directory of its own, a token printed once
//	millrace emit       append events: one from arguments, many from a file or standard input
//	millrace follow     print events as they come, through restarts
//	millrace snapshot   print the state that the events add up to
//	millrace check      examine a server, or the data directory of a stopped one
//	millrace bench      measure appending, reading and following
//	millrace version    which build this is
//
// Exit status: 0 ok, 1 failed, 2 usage, 3 not found, 4 conflict, 5 not allowed.
package main
