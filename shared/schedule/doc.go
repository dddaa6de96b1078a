// Package schedule makes tasks at regular times: it works out which ticks have come, makes exactly one task of each, and
// treats those that were missed by the schedule's misfire policy.
//
// A tick's task has an id that follows from schedule and time, so that several processes make it only once; beside it, a
// schedule's item remembers up to when its ticks were made. Decisions are events on the journal with the key
// Schedule:/NAME: ScheduleFired, ScheduleMissed, ScheduleSuspended and ScheduleResumed; package queue writes ScheduleSkipped
// where the tick before was still running. A schedule may start an order instead of making tasks.
//
// It imports clock, cron, definition, event, event/typed, journal, order, queue, store and task.
package schedule
