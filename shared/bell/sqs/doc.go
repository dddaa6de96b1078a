// Package sqs is a bell by way of one standard queue of Amazon SQS: each ring is a message, {"queue":NAME,"at":TIME,"again":BOOLEAN}.
//
// SQS keeps the delay of a ring, in whole seconds up to 15 minutes. It delivers a message at least once and in no order,
// which is all that the port asks for. Who hears rings is a Lambda function with the queue as its event source, which
// reads bodies with [Parse]; or, on plain hosts, [Bell.Receive].
//
// Permissions: sqs:SendMessage to ring, sqs:GetQueueAttributes for Ping, sqs:ReceiveMessage and sqs:DeleteMessage to hear,
// and sqs:GetQueueUrl where the queue is given by its name.
//
// The package imports awsenv, bell and the SDK; it alone imports the SDK's module for SQS.
package sqs
