// Package e2e tests the program as its users meet it: the built binary in processes of its own, over HTTP and on the command
// line, killed, restarted, on a full disk, and with its database gone.
package e2e
