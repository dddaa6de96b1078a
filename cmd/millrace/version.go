package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCommand struct{ format }

// Run prints the version.
func (v versionCommand) Run(c console) error {
	if v.Output != "table" {
		return printJSON(c.out, map[string]string{"version": version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
	}
	_, err := fmt.Fprintf(c.out, "millrace %s (%s, %s/%s)\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// version answers what the build says of itself: the module's version, or the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}
