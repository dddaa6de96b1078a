// Package schedule makes tasks at regular times: it works out which ticks have come, makes exactly one task of each, and says
// what became of those that were missed.
//
// A tick's task has an id that follows from schedule and time, so that it is made once whoever makes it, and however often;
// beside it, a schedule's item remembers up to when its ticks were made. Every decision is an event on the journal, with the
// key Schedule:/NAME: ScheduleFired, ScheduleMissed, and ScheduleSkipped where the tick before was still running.
//
// It imports clock, cron, definition, event, journal, queue, store and task.
package schedule
