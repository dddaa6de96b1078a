// Package quartz compares cron expressions with the real Quartz, which scripts/quartz fetches: on thousands of random
// expressions, instants and time zones the two must agree, but for faults of Quartz that are listed one by one.
//
// The tests need Java and Maven. Without them they are skipped, with a message; with CI=true they fail.
package quartz
