package architecture_test

import (
	"encoding/json"
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
	"AWS/ApiGateway": {"Count", "4xx", "5xx", "Latency"},
	"AWS/DynamoDB":   {"ConsumedReadCapacityUnits", "ConsumedWriteCapacityUnits", "ReadThrottleEvents", "WriteThrottleEvents"},
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

// TestDashboardsShowMetricsThatThereAre: CloudWatch's, and Grafana's by TestMetricsHaveOneName.
func TestDashboardsShowMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	dashboard := properties[struct {
		DashboardBody string `yaml:"DashboardBody"`
	}](t, readTemplate(t).Resources["Dashboard"].Properties)
	var shown struct {
		Widgets []struct{ Properties struct{ Metrics [][]any } }
	}
	if err := json.Unmarshal([]byte(dashboard.DashboardBody), &shown); err != nil || len(shown.Widgets) == 0 {
		t.Fatalf("%d widgets, %v", len(shown.Widgets), err)
	}
	for _, widget := range shown.Widgets {
		for _, m := range widget.Properties.Metrics {
			namespace, name := m[0].(string), m[1].(string)
			if known := ofAWS[namespace]; !slices.Contains(known, name) && (namespace != "Millrace" || !slices.Contains(metricNames(), name)) {
				t.Errorf("%s %s is shown, which nothing publishes", namespace, name)
			}
		}
	}
}

// TestEachAlarmIsExplained: the runbook says of each alarm what it means and what to do, and of nothing else.
func TestEachAlarmIsExplained(t *testing.T) {
	t.Parallel()
	runbook, err := os.ReadFile("../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, resource := range readTemplate(t).Resources {
		if resource.Type != "AWS::CloudWatch::Alarm" {
			continue
		}
		for _, function := range []string{"Errors", "Throttles"} { // each function has these
			if strings.HasSuffix(name, function) {
				name = "…" + function
			}
		}
		if !strings.Contains(string(runbook), "\n### "+name+"\n") {
			t.Errorf("docs/runbook.md has no ### %s", name)
		}
	}
}

// TestMetricsHaveOneName: what documents and code call a metric is in package metric.
func TestMetricsHaveOneName(t *testing.T) {
	t.Parallel()
	var files []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "infra/*/*.json"} {
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
