// Package lambda is the target that runs tasks by invoking Lambda functions. It is apart from package worker so that only
// a program that wants it links the client.
//
// It imports awsenv, queue and worker.
package lambda
