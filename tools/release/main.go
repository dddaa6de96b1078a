// Command release packs what scripts/release has built: an archive of each platform, a list of what is linked (a CycloneDX bill of
// materials) beside it, and checksums of all. The same sources make the same bytes, whoever packs them, wherever and whenever.
//
//	release OUT VERSION SECONDS ROOT PLATFORM...
//
// OUT holds a folder build/PLATFORM for each platform, such as linux-amd64, with the files of its archive; LICENSE, README.md and CHANGELOG.md
// of ROOT are added. SECONDS since 1970 is the time that the files in the archives have.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 5 {
		return fmt.Errorf("want OUT VERSION SECONDS ROOT PLATFORM..., got %d arguments", len(args))
	}
	out, version, root := args[0], args[1], args[3]
	seconds, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return fmt.Errorf("SECONDS: %w", err)
	}
	at := time.Unix(seconds, 0).UTC()
	var names []string
	for _, platform := range args[4:] {
		name := "millrace-" + version + "-" + platform
		build := filepath.Join(out, "build", platform)
		if err := archive(filepath.Join(out, name+".tar.gz"), name, build, root, at); err != nil {
			return err
		}
		if err := materials(filepath.Join(out, name+".cdx.json"), build, version, at); err != nil {
			return err
		}
		names = append(names, name+".cdx.json", name+".tar.gz")
	}
	return checksums(out, names)
}
