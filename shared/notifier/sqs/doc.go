// Package sqs is a notifier that uses one standard queue of Amazon SQS: each notification is a message,
// {"queue":NAME,"at":TIME,"again":BOOLEAN}.
//
// SQS keeps the delay of a message, in whole seconds up to 15 minutes. It delivers a message at least once and in no
// order, which is all that the port requires. The receiver is a Lambda function with the queue as its event source, which
// parses bodies with [Parse]; or, on plain hosts, [Notifier.Receive].
//
// Permissions: sqs:SendMessage for Notice, sqs:GetQueueAttributes for Ping, sqs:ReceiveMessage and sqs:DeleteMessage for
// Receive, and sqs:GetQueueUrl if the queue is given by its name.
//
// The package imports awsenv, notifier and the SDK; it alone imports the SDK's module for SQS.
package sqs
