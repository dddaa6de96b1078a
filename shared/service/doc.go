// Package service assembles what every process consists of: its settings, the store that they name, the journal on it, and
// the task engine on both.
//
// It imports api, notifier, clock, config, definition, exchanges, host, metric, journal, projection, queue, schedule, store, stream, membership, order, upgrade and worker,
// and no backend: a main passes those that it links.
package service
