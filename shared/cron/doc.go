// Package cron says when a schedule fires: it reads expressions, finds the next and the previous time, and puts
// expressions into words.
//
// The number of fields decides the language:
//   - 6 or 7 fields are Quartz: seconds, minutes, hours, day of month, month, day of week (1 = Sunday) and, if given,
//     the year; exactly one of the two day fields is "?". Besides lists, ranges that may wrap, steps and names there are
//     L, L-n, nW, LW and L-nW for days of the month, and L, nL and n#m for days of the week.
//   - 5 fields are classic cron: minutes, hours, day of month, month, day of week (0 or 7 = Sunday). Where both day
//     fields are restricted, a day need match only one of them.
//   - @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly are short for classic expressions.
//   - "@every 1h30m" fires at the multiples of its length since 1970-01-01T00:00:00Z, whoever asks and from when on.
//
// All of them fire from 1970 to the end of 2099, in local time, and on whole seconds. An [Expression] is read by
// [Parse]; [Expression.In] places it in a time zone, with a rule for the hours that daylight saving skips and repeats
// ([Saving]); the [Timetable] so made answers times.
//
// Where Quartz 2.5.2 contradicts its own rules we follow the rules; tests/quartz compares the two and names what differs.
//
// Looking for a time allocates nothing, and is bounded: nobody can write an expression whose search takes long.
//
// The package does no I/O but for reading time zones; it imports only the standard library.
package cron
