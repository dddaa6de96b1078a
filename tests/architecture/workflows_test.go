package architecture_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// TestHostsDoTheSame: the jobs of each host of repositories do what the project's own commands do, the same on each, and these commands exist.
func TestHostsDoTheSame(t *testing.T) {
	t.Parallel()
	github := map[string][]string{}
	files, err := filepath.Glob("../../.github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d workflows, %v", len(files), err)
	}
	for _, file := range files {
		var workflow struct {
			Jobs map[string]struct {
				Steps []struct {
					Run string `yaml:"run"`
				} `yaml:"steps"`
			} `yaml:"jobs"`
		}
		readYAML(t, file, &workflow)
		name := strings.TrimSuffix(filepath.Base(file), ".yml")
		for _, job := range workflow.Jobs {
			for _, step := range job.Steps {
				github[name] = append(github[name], commands(step.Run)...)
			}
		}
	}
	gitlab := map[string][]string{}
	var all map[string]yaml.Node
	readYAML(t, "../../.gitlab-ci.yml", &all)
	for name, node := range all {
		var job struct {
			Script []string `yaml:"script"`
		}
		if node.Decode(&job) != nil || job.Script == nil {
			continue
		}
		for _, line := range job.Script {
			gitlab[name] = append(gitlab[name], commands(line)...)
		}
	}
	if diff := cmp.Diff(github, gitlab); diff != "" {
		t.Errorf("what jobs do (-GitHub +GitLab):\n%s", diff)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for job, used := range github {
		for _, c := range used {
			if target, is := strings.CutPrefix(c, "make "); is && !regexp.MustCompile(`(?m)^`+target+`:`).Match(makefile) {
				t.Errorf("%s: the Makefile has no %s", job, target)
			} else if _, err := os.Stat("../../" + c); !is && err != nil {
				t.Errorf("%s: %v", job, err)
			}
		}
	}
	if len(slices.Concat(github["ci"], github["deploy"], github["release"])) < 4 {
		t.Errorf("the jobs do %v", github)
	}
}

// commands returns the project's commands that a line runs: targets of make, and scripts.
func commands(line string) []string {
	return regexp.MustCompile(`make [a-z-]+|scripts/[a-z-]+|\.ci/run`).FindAllString(line, -1)
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
