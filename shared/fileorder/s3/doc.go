// Package s3 reads the marks of objects of Amazon S3, copies and removes objects, for package fileorder.
//
// It sends the three requests by itself, signed by the SDK. An object is copied or removed only if it is the marked one (If-Match). S3
// copies objects of up to 5 GB at once; larger ones are refused. Where requests are not sent to an endpoint of the environment, they go
// to S3 of the configured region, in which the buckets must lie.
//
// Permissions: s3:GetObject and s3:ListBucket for Mark, without which S3 does not tell that an object has gone; s3:GetObject and
// s3:PutObject for Copy, with s3:GetObjectTagging and s3:PutObjectTagging for objects with tags; s3:DeleteObject for Remove.
//
// It imports awsenv, fileorder and the SDK.
package s3
