// Package samples knows the payloads in events/, one folder per function and one file per case, and the expected response of
// each. It replays them through a function in the test's own process, and hands them to tests that replay them by other
// means.
package samples
