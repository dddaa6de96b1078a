package architecture_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/metric"
)

// ofAWS are the metrics of AWS's own that alarms use, by namespace.
var ofAWS = map[string][]string{
	"AWS/Lambda":     {"Errors", "Invocations", "Throttles"},
	"AWS/SQS":        {"ApproximateNumberOfMessagesVisible"},
	"AWS/ApiGateway": {"5xx"},
}

// TestAlarmsAreOnMetricsThatThereAre: an alarm on a name that nothing publishes never goes off.
func TestAlarmsAreOnMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	for name, resource := range readTemplate(t).Resources {
		if resource.Type != "AWS::CloudWatch::Alarm" {
			continue
		}
		alarm := properties[struct {
			Namespace  string `yaml:"Namespace"`
			MetricName string `yaml:"MetricName"`
		}](t, resource.Properties)
		known := ofAWS[alarm.Namespace]
		if alarm.Namespace == "Millrace" {
			known = metricNames()
		}
		if !slices.Contains(known, alarm.MetricName) {
			t.Errorf("%s is on %s %s, which nothing publishes", name, alarm.Namespace, alarm.MetricName)
		}
	}
}

// TestMetricsHaveOneName: what documents and code call a metric is in package metric.
func TestMetricsHaveOneName(t *testing.T) {
	t.Parallel()
	var files []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for path := range packages(t) {
		found, err := filepath.Glob(filepath.Join("../..", path, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	suffix := regexp.MustCompile(`_(bucket|count|sum)$`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\bmillrace_[a-z_]*(_seconds|_total|_followers|_bytes|_count)\b`).FindAllString(string(text), -1) {
			if names := metricNames(); !slices.Contains(names, name) && !slices.Contains(names, suffix.ReplaceAllString(name, "")) {
				t.Errorf("%s: %s is in no list of metrics; there are %s", file, name, strings.Join(names, ", "))
			}
		}
	}
}

func metricNames() (names []string) {
	for _, m := range metric.All() {
		names = append(names, m.Name)
	}
	return names
}
