// Package service is what every deployed function is made of: its settings, the store they name, and the journal on it.
//
// It imports api, config, host, journal, overview and store, and no backend: a main hands over those it links.
package service
