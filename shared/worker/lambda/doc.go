// Package lambda is the target that runs tasks by invoking Lambda functions. It is apart from package worker so that only
// programs that use it link the client of AWS.
//
// It imports awsenv, queue, worker and the SDK of AWS.
package lambda
