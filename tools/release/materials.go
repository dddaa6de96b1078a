package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// bill is a CycloneDX bill of materials, of https://cyclonedx.org/docs/1.5/json/.
type bill struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	Purl       string     `json:"purl,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// materials writes what the programs below build are linked of, as the linker has noted in them: modules with their versions and the sums
// that go.sum has, and the Go release.
func materials(to, build, version string, at time.Time) error {
	files, err := below(build)
	if err != nil {
		return err
	}
	modules, release, product := map[string]component{}, "", ""
	for _, path := range files {
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		release, product = info.GoVersion, info.Main.Path
		for _, m := range info.Deps {
			sum := m.Sum
			if m.Replace != nil {
				m, sum = m.Replace, m.Replace.Sum
			}
			purl := "pkg:golang/" + m.Path + "@" + m.Version
			modules[purl] = component{"library", purl, m.Path, m.Version, purl, []property{{"go:sum", sum}}}
		}
	}
	purl := "pkg:golang/std@" + release
	modules[purl] = component{"library", purl, "std", release, purl, nil}
	b := bill{"CycloneDX", "1.5", 1, metadata{at.Format(time.RFC3339), component{
		"application", product + "@" + version, product, version, "pkg:golang/" + product + "@v" + version,
		[]property{{"platform", filepath.Base(build)}},
	}}, nil}
	for _, m := range modules {
		b.Components = append(b.Components, m)
	}
	slices.SortFunc(b.Components, func(x, y component) int {
		if x.Ref < y.Ref {
			return -1
		}
		return 1
	})
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(to, append(text, '\n'), 0o644)
}
