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
	for _, m := range shownByCloudWatch(t) {
		namespace, name := m[0].(string), m[1].(string)
		if known := ofAWS[namespace]; !slices.Contains(known, name) && (namespace != "Millrace" || !slices.Contains(metricNames(), name)) {
			t.Errorf("%s %s is shown, which nothing publishes", namespace, name)
		}
	}
}

// shownByCloudWatch returns the metrics of the template's dashboard: namespace, name, and each dimension's name and value.
func shownByCloudWatch(t *testing.T) (all [][]any) {
	t.Helper()
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
		all = append(all, widget.Properties.Metrics...)
	}
	return all
}

// TestWhatIsWatchedIsOfOneDeployment: alarms and dashboards say of which store what they show of Millrace's is, by all dimensions that
// it is published with, so that two deployments in one account or one Prometheus do not add up.
func TestWhatIsWatchedIsOfOneDeployment(t *testing.T) {
	t.Parallel()
	const store = "dynamodb:${TablePrefix}"
	for name, resource := range readTemplate(t).Resources {
		if resource.Type != "AWS::CloudWatch::Alarm" {
			continue
		}
		alarm := properties[struct {
			MetricName string `yaml:"MetricName"`
			Dimensions []struct {
				Name  string `yaml:"Name"`
				Value string `yaml:"Value"`
			} `yaml:"Dimensions"`
		}](t, resource.Properties)
		var got []string
		for _, d := range alarm.Dimensions {
			got = append(got, d.Name)
		}
		if want := dimensions(alarm.MetricName); want != nil && (!slices.Equal(got, want) || alarm.Dimensions[0].Value != store) {
			t.Errorf("%s: the dimensions are %v, want %v with the store %s", name, alarm.Dimensions, want, store)
		}
	}
	for _, m := range shownByCloudWatch(t) {
		got := []string{}
		for i := 2; i+1 < len(m); i += 2 {
			got = append(got, m[i].(string))
		}
		if want := dimensions(m[1].(string)); want != nil && (!slices.Equal(got, want) || m[3] != store) {
			t.Errorf("%v is shown, want the dimensions %v with the store %s", m, want, store)
		}
	}
	text, err := os.ReadFile("../../infra/grafana/millrace.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, query := range regexp.MustCompile(`"expr": ".*"`).FindAllString(string(text), -1) {
		if !strings.Contains(query, `store=~\"$store\"`) {
			t.Errorf("infra/grafana: %s is of every deployment", query)
		}
	}
}

// dimensions returns what a metric of Millrace's is published with; nil for others.
func dimensions(name string) []string {
	for _, m := range metric.All() {
		if m.Name == name {
			return append([]string{metric.Store}, m.Labels...)
		}
	}
	return nil
}

// TestEachAlarmIsExplained: the runbook says of each alarm what it means and what to do, and before "Deploys" of nothing else.
func TestEachAlarmIsExplained(t *testing.T) {
	t.Parallel()
	runbook, err := os.ReadFile("../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	explained := map[string]bool{}
	alarms, _, _ := strings.Cut(string(runbook), "\n## Deploys\n")
	for line := range strings.Lines(alarms) {
		if heading, is := strings.CutPrefix(line, "### "); is {
			explained[strings.TrimSpace(heading)] = false
		}
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
		if _, is := explained[name]; !is {
			t.Errorf("docs/runbook.md has no ### %s", name)
		}
		explained[name] = true
	}
	for heading, is := range explained {
		if !is {
			t.Errorf("docs/runbook.md explains %s, which is no alarm", heading)
		}
	}
}

// TestMetricsHaveOneName: what documents and code call a metric is in package metric.
func TestMetricsHaveOneName(t *testing.T) {
	t.Parallel()
	var files []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "infra/*.yaml", "infra/*/*.json", "infra/*/*.yaml", "infra/*/*/*.yaml"} {
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
