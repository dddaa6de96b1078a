package infra_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// object is what all objects of Kubernetes have.
type object struct {
	APIVersion, Kind string
	Metadata         struct {
		Name   string
		Labels map[string]string
	}
}

// known are the objects that are read strictly, as the API server does: a field that there is not is a mistake. Those of Knative and of
// the Gateway API are read by the types below, which have the fields that are used.
var known = map[string]func() any{
	"v1 ServiceAccount":                      func() any { return new(core.ServiceAccount) },
	"v1 ConfigMap":                           func() any { return new(core.ConfigMap) },
	"v1 Service":                             func() any { return new(core.Service) },
	"apps/v1 Deployment":                     func() any { return new(apps.Deployment) },
	"apps/v1 StatefulSet":                    func() any { return new(apps.StatefulSet) },
	"batch/v1 CronJob":                       func() any { return new(batch.CronJob) },
	"policy/v1 PodDisruptionBudget":          func() any { return new(policy.PodDisruptionBudget) },
	"networking.k8s.io/v1 NetworkPolicy":     func() any { return new(networking.NetworkPolicy) },
	"autoscaling/v2 HorizontalPodAutoscaler": func() any { return new(autoscaling.HorizontalPodAutoscaler) },
	"serving.knative.dev/v1 Service":         func() any { return new(knativeService) },
	"gateway.networking.k8s.io/v1 HTTPRoute": func() any { return new(httpRoute) },
	"monitoring.coreos.com/v1 PodMonitor":    func() any { return new(podMonitor) },
}

type knativeService struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       struct {
		Template struct {
			Metadata map[string]any `json:"metadata"`
			Spec     struct {
				core.PodSpec         `json:",inline"`
				ContainerConcurrency int64 `json:"containerConcurrency"`
				TimeoutSeconds       int64 `json:"timeoutSeconds"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

type podMonitor struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       struct {
		Selector struct {
			MatchLabels map[string]string `json:"matchLabels"`
		} `json:"selector"`
		PodMetricsEndpoints []struct {
			Port     string `json:"port"`
			Path     string `json:"path"`
			Interval string `json:"interval"`
		} `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

type httpRoute struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       struct {
		ParentRefs []struct {
			Name string `json:"name"`
		} `json:"parentRefs"`
		Rules []struct {
			BackendRefs []struct {
				Name string `json:"name"`
				Port int    `json:"port"`
			} `json:"backendRefs"`
			Matches []struct {
				Path struct {
					Type  string `json:"type"`
					Value string `json:"value"`
				} `json:"path"`
				Method string `json:"method"`
			} `json:"matches"`
			Timeouts map[string]string `json:"timeouts"`
		} `json:"rules"`
	} `json:"spec"`
}

// objects reads the documents of a text, each strictly.
func objects(t *testing.T, name, text string) (all []any) {
	t.Helper()
	for _, document := range regexp.MustCompile(`(?m)^---$`).Split(text, -1) {
		var of object
		if err := yaml.Unmarshal([]byte(document), &of); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if of.Kind == "" || of.Kind == "Kustomization" {
			continue
		}
		made, is := known[of.APIVersion+" "+of.Kind]
		if !is {
			t.Errorf("%s: the test does not know %s %s", name, of.APIVersion, of.Kind)
			continue
		}
		o := made()
		if err := yaml.UnmarshalStrict([]byte(document), o); err != nil {
			t.Errorf("%s: %s %s: %v", name, of.Kind, of.Metadata.Name, err)
		}
		if of.Metadata.Labels["app.kubernetes.io/name"] != "millrace" {
			t.Errorf("%s: %s %s lacks its label", name, of.Kind, of.Metadata.Name)
		}
		all = append(all, o)
	}
	return all
}

// hardened checks what every pod has.
func hardened(t *testing.T, name string, pod *core.PodSpec) {
	t.Helper()
	if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		t.Errorf("%s: has the cluster's token", name)
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		s, p := c.SecurityContext, pod.SecurityContext
		if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
			s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) {
			t.Errorf("%s: %s may do too much: %v", name, c.Name, s)
		}
		if (s == nil || s.RunAsNonRoot == nil) && (p == nil || p.RunAsNonRoot == nil) {
			t.Errorf("%s: %s may be root", name, c.Name)
		}
		if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
			t.Errorf("%s: %s has no limits", name, c.Name)
		}
	}
}

// TestHelm: the chart is one process with a volume, or several over PostgreSQL or DynamoDB, of objects that there are.
func TestHelm(t *testing.T) {
	for name, c := range map[string]struct {
		values map[string]any
		kinds  []string
	}{
		"one process": {nil, []string{"ConfigMap", "NetworkPolicy", "Service", "ServiceAccount", "StatefulSet"}},
		"several on PostgreSQL": {map[string]any{"postgres": map[string]any{"secretName": "store"}, "env": map[string]any{"PGSSLMODE": "verify-full"}},
			[]string{"ConfigMap", "Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service", "ServiceAccount"}},
		"several on DynamoDB": {map[string]any{"store": "dynamodb:millrace", "bell": "sqs:notices", "autoscaling": map[string]any{"enabled": true}, "podMonitor": true,
			"env": map[string]any{"AWS_REGION": "eu-central-1"}, "serviceAccount": map[string]any{"annotations": map[string]any{"role": "r"}}},
			[]string{"ConfigMap", "Deployment", "HorizontalPodAutoscaler", "NetworkPolicy", "PodDisruptionBudget", "PodMonitor", "Service", "ServiceAccount"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := render(t, c.values)
			var kinds []string
			for _, m := range regexp.MustCompile(`(?m)^kind: (\w+)`).FindAllStringSubmatch(text, -1) {
				kinds = append(kinds, m[1])
			}
			slices.Sort(kinds)
			if diff := cmp.Diff(c.kinds, kinds); diff != "" {
				t.Errorf("kinds (-want +got):\n%s", diff)
			}
			for _, o := range objects(t, name, text) {
				switch o := o.(type) {
				case *apps.Deployment:
					probed(t, &o.Spec.Template.Spec)
				case *apps.StatefulSet:
					probed(t, &o.Spec.Template.Spec)
				case *networking.NetworkPolicy:
					ports := []int{53, 443, 80}
					if strings.Contains(name, "PostgreSQL") {
						ports = append(ports, 5432)
					}
					closed(t, o, ports...)
				}
			}
		})
	}
	if _, err := rendered(map[string]any{"store": "dynamodb:millrace"}); err == nil || !strings.Contains(err.Error(), "bell: sqs:NAME") {
		t.Errorf("several processes without a queue: %v", err)
	}
	both := map[string]any{"store": "dynamodb:millrace", "bell": "sqs:notices", "postgres": map[string]any{"secretName": "store"}}
	if _, err := rendered(both); err == nil || !strings.Contains(err.Error(), "give one of them") {
		t.Errorf("two stores: %v", err)
	}
}

// TestHelmOnPostgreSQL: two processes without a volume have the URL from the secret, make the tables first, and reach the database.
func TestHelmOnPostgreSQL(t *testing.T) {
	postgres := map[string]any{"secretName": "store", "key": "address", "port": 6432}
	text := render(t, map[string]any{"postgres": postgres, "env": map[string]any{"PGSSLMODE": "verify-full"}})
	if !strings.Contains(text, "{port: 6432, protocol: TCP}") {
		t.Error("the network policy does not let requests to the database out")
	}
	for _, o := range objects(t, "PostgreSQL", text) {
		d, is := o.(*apps.Deployment)
		if !is {
			continue
		}
		pod := d.Spec.Template.Spec
		if *d.Spec.Replicas != 2 || len(pod.InitContainers) != 1 || len(pod.Volumes) != 2 || slices.Contains(pod.Containers[0].Args, "--data") {
			t.Errorf("%d replicas, %d containers before, %d volumes, arguments %q", *d.Spec.Replicas, len(pod.InitContainers), len(pod.Volumes), pod.Containers[0].Args)
		}
		for _, c := range []core.Container{pod.InitContainers[0], pod.Containers[0]} {
			env := map[string]core.EnvVar{}
			for _, v := range c.Env {
				env[v.Name] = v
			}
			want := &core.SecretKeySelector{LocalObjectReference: core.LocalObjectReference{Name: "store"}, Key: "address"}
			if from := env["MILLRACE_STORE"].ValueFrom; from == nil || !cmp.Equal(want, from.SecretKeyRef) || env["PGSSLMODE"].Value != "verify-full" || env["MILLRACE_BELL"].Name != "" {
				t.Errorf("%s: its environment is %+v", c.Name, c.Env)
			}
		}
		if args := pod.InitContainers[0].Args; !slices.Equal(args, []string{"tables"}) {
			t.Errorf("what comes first is %q, want the tables", args)
		}
	}
}

func probed(t *testing.T, pod *core.PodSpec) {
	t.Helper()
	hardened(t, "the server", pod)
	c := pod.Containers[0]
	if c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.LivenessProbe.HTTPGet.Path != "/healthz" || c.StartupProbe.HTTPGet.Path != "/healthz" {
		t.Errorf("probes: %v %v %v", c.ReadinessProbe, c.LivenessProbe, c.StartupProbe)
	}
}

func render(t *testing.T, values map[string]any) string {
	t.Helper()
	text, err := rendered(values)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// rendered returns what helm template prints.
func rendered(values map[string]any) (string, error) {
	chart, err := loader.Load("../../infra/helm")
	if err != nil {
		return "", err
	}
	all, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "millrace", Namespace: "default"}, nil)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".yaml") {
			out.WriteString("---\n" + files[name] + "\n")
		}
	}
	return out.String(), nil
}

// TestKnativeIsTheTemplate: the same functions, with the same variables, timeouts, accounts, rights, ticks and routes.
func TestKnativeIsTheTemplate(t *testing.T) {
	template := readTemplate(t, nil)
	want, got := things{}, things{}
	for name, thing := range ofTemplate(t, template) {
		kind, of, _ := strings.Cut(name, " ")
		switch kind {
		case "function":
			f := thing.(map[string]any)
			want["function "+of] = []any{slices.Sorted(maps.Keys(f["Environment"].(map[string]any))), f["Timeout"]}
			want["account of "+of] = true
		case "schedule":
			want["tick of "+strings.TrimPrefix(of, "of ")] = true
		case "route":
			want[name] = thing.(map[string]any)["to"]
		case "right":
			if strings.Contains(of, "FunctionRole on ") && !strings.HasSuffix(of, " on Secrets.Id") { // here the secret is a file
				want[name] = thing
			}
		}
	}
	for name, text := range folderOf(t, "../../infra/knative") {
		for _, o := range objects(t, name, text) {
			switch o := o.(type) {
			case *knativeService:
				got.knative(t, o)
			case *networking.NetworkPolicy:
				closed(t, o, 53, 443, 80)
			case *core.ConfigMap:
				got.policies(t, o.Data)
			case *core.ServiceAccount:
				got["account of "+camel(o.Labels["app.kubernetes.io/component"])] = true
			case *batch.CronJob:
				hardened(t, o.Name, &o.Spec.JobTemplate.Spec.Template.Spec)
				got["tick of "+camel(strings.TrimPrefix(o.Name, "millrace-"))] = true
			case *httpRoute:
				got.routes(t, want, o)
			}
		}
	}
	if diff := cmp.Diff(normal(t, want), normal(t, got)); diff != "" {
		t.Errorf("(-template.yaml +infra/knative):\n%s", diff)
	}
}

// closed checks that a policy is for all pods of Millrace, lets nobody in but whom it names, and lets out to these ports alone.
func closed(t *testing.T, p *networking.NetworkPolicy, ports ...int) {
	t.Helper()
	if p.Spec.PodSelector.MatchLabels["app.kubernetes.io/name"] != "millrace" || len(p.Spec.PolicyTypes) != 2 {
		t.Errorf("%s is for %v and %v", p.Name, p.Spec.PodSelector, p.Spec.PolicyTypes)
	}
	for _, in := range p.Spec.Ingress {
		if len(in.From) == 0 {
			t.Errorf("%s lets everybody in", p.Name)
		}
	}
	var out []int
	for _, rule := range p.Spec.Egress {
		if len(rule.Ports) == 0 {
			t.Errorf("%s lets out to every port", p.Name)
		}
		for _, port := range rule.Ports {
			out = append(out, port.Port.IntValue())
		}
	}
	slices.Sort(out)
	slices.Sort(ports)
	if out = slices.Compact(out); !slices.Equal(out, ports) {
		t.Errorf("%s lets out to %v, want %v", p.Name, out, ports)
	}
}

// policies adds what the policies let each function do, on the tables and the queue that the configuration names.
func (made things) policies(t *testing.T, config map[string]string) {
	t.Helper()
	symbols := map[string]string{}
	prefix := strings.TrimPrefix(config["MILLRACE_STORE"], "dynamodb:")
	for _, table := range []string{"journal", "work", "definitions"} {
		symbols["arn:aws:dynamodb:REGION:ACCOUNT:table/"+prefix+"-"+table] = camel(table) + "Table.Arn"
	}
	queue, named := strings.CutPrefix(config["MILLRACE_BELL"], "sqs:https://sqs."+config["AWS_REGION"]+".amazonaws.com/ACCOUNT/")
	if !named {
		t.Errorf("MILLRACE_BELL is %s, want the URL of a queue in the region: its name takes a right that no policy gives", config["MILLRACE_BELL"])
	}
	symbols["arn:aws:sqs:REGION:ACCOUNT:"+queue] = "Notices.Arn"
	files, err := filepath.Glob("../../infra/knative/policies/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		read, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		policy := parsed(t, string(read)).(map[string]any)
		for _, s := range policy["Statement"].([]any) {
			statement := s.(map[string]any)
			if symbol := symbols[text(statement["Resource"])]; symbol != "" {
				statement["Resource"] = symbol
			}
		}
		made.right(camel(strings.TrimSuffix(filepath.Base(file), ".json"))+"FunctionRole", policy)
	}
}

func (made things) knative(t *testing.T, o *knativeService) {
	t.Helper()
	name := text(o.Metadata["name"])
	spec := &o.Spec.Template.Spec
	hardened(t, name, &spec.PodSpec)
	c := spec.Containers[0]
	if c.Image != "millrace-"+name || spec.ServiceAccountName != "millrace-"+name || c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.LivenessProbe.HTTPGet.Path != "/healthz" {
		t.Errorf("%s: image %s, account %s, ready by %v, alive by %v", name, c.Image, spec.ServiceAccountName, c.ReadinessProbe, c.LivenessProbe)
	}
	var variables []string
	for _, v := range c.Env {
		if v.Name != "AWS_REGION" { // which Lambda sets
			variables = append(variables, v.Name)
		}
	}
	slices.Sort(variables)
	made["function "+camel(name)] = []any{variables, spec.TimeoutSeconds}
}

// routes adds the routes that a match is the way of a gateway to say.
func (made things) routes(t *testing.T, want things, o *httpRoute) {
	t.Helper()
	for _, rule := range o.Spec.Rules {
		if len(rule.Matches) > 8 {
			t.Errorf("%v: a rule may have 8 matches", o.Metadata["name"])
		}
		for _, m := range rule.Matches {
			method := m.Method
			if method == "" {
				method = "ANY"
			}
			found := ""
			for name := range want {
				if route, is := strings.CutPrefix(name, "route "); is && saidBy(route, method, m.Path.Type, m.Path.Value) {
					found = route
				}
			}
			made["route "+found] = camel(rule.BackendRefs[0].Name)
		}
	}
}

// saidBy reports whether a match of the Gateway API takes what a route of API Gateway does.
func saidBy(route, method, kind, value string) bool {
	if route == "$default" {
		return method == "ANY" && kind == "PathPrefix" && value == "/"
	}
	verb, path, _ := strings.Cut(route, " ")
	if verb != method {
		return false
	}
	if below, is := strings.CutSuffix(path, "{proxy+}"); is {
		return kind == "PathPrefix" && value == below
	}
	if strings.Contains(path, "{") {
		return kind == "RegularExpression" && value == regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, "[^/]+")
	}
	return kind == "Exact" && value == path
}

// folderOf returns the texts of a folder's manifests, which its kustomization lists.
func folderOf(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".yaml" {
			var read []byte
			read, err = os.ReadFile(path)
			files[filepath.Base(path)] = string(read)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var listed struct{ Resources []string }
	if err := yaml.Unmarshal([]byte(files["kustomization.yaml"]), &listed); err != nil {
		t.Fatal(err)
	}
	delete(files, "kustomization.yaml")
	if diff := cmp.Diff(slices.Sorted(maps.Keys(files)), slices.Sorted(slices.Values(listed.Resources))); diff != "" {
		t.Errorf("kustomization.yaml (-files +listed):\n%s", diff)
	}
	return files
}
