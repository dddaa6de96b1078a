// Package service is what every process is made of: its settings, the store they name, the journal on it, and the task engine on
// both.
//
// It imports the engine's packages and what serves them, and no backend: a main hands over those it links.
package service
