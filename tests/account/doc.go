// Package account deploys the template to an emulated AWS account, with the functions as they are shipped, and uses what comes up
// through its gateway. The account checks permissions as AWS does: a function may do only what the template allows it.
//
// Its tests run within scripts/with-account, as scripts/test does where it finds Python.
package account
