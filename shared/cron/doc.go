// Package cron computes when a schedule fires: it reads expressions, finds the next and the previous time, and describes
// expressions in English.
//
// The number of fields decides the language:
//   - 6 or 7 fields are Quartz: seconds, minutes, hours, day of month, month, day of week (1 = Sunday) and, if given,
//     the year; exactly one of the two day fields is "?". Besides lists, ranges that may wrap, steps and names there are
//     L, L-n, nW, LW and L-nW for days of the month, and L, nL and n#m for days of the week.
//   - 5 fields are classic cron: minutes, hours, day of month, month, day of week (0 or 7 = Sunday). Where both day
//     fields are restricted, a day need match only one of them.
//   - @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly are short for classic expressions.
//   - "@every 1h30m" fires at the multiples of its length since 1970-01-01T00:00:00Z, independently of when one asks.
//
// All of them fire from 1970 to the end of 2099, in local time, and on whole seconds. [Parse] reads an [Expression];
// [Expression.In] places it in a time zone, with a rule for the hours that daylight saving skips and repeats ([Saving]);
// the resulting [Timetable] returns times.
//
// Where Quartz 2.5.2 contradicts its own rules this package follows the rules; tests/quartz compares the two and lists the
// differences.
//
// A search for a time allocates nothing and is bounded: there is no expression whose search takes long.
//
// The package does no I/O except that it reads time zones. It imports only the standard library.
package cron
