package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// release is the version that this source is, or becomes: the newest in CHANGELOG.md.
const release = "0.3.0"

type versionCommand struct{ format }

// Run prints the version, and the commit that it was built from.
func (v versionCommand) Run(c console) error {
	if v.Output != "table" {
		return printJSON(c.out, map[string]string{
			"version": version(), "commit": commit(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
		})
	}
	_, err := fmt.Fprintf(c.out, "millrace %s (%s, %s, %s/%s)\n", version(), commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// version returns the version, which is also the API's.
func version() string { return release }

// commit returns the first 12 digits of the commit that the build was made from, with a "+" where files had been changed;
// "unknown" where the build has no such information.
func commit() string {
	said := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			said[s.Key] = s.Value
		}
	}
	digits := said["vcs.revision"]
	digits = cmp.Or(digits[:min(12, len(digits))], "unknown")
	if said["vcs.modified"] == "true" {
		digits += "+"
	}
	return digits
}
