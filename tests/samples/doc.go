// Package samples knows the payloads in events/, one folder per function and one file per case, and what each is to be
// answered with. It replays them through a function in the test's own process, and serves those that replay them by other
// means.
package samples
