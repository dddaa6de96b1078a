package infra_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// ofTemplate returns what the template makes.
func ofTemplate(t *testing.T, tm *template) things {
	t.Helper()
	made := things{}
	globals := tm.value(t, &tm.Globals.Function).(map[string]any)
	for name, resource := range tm.Resources {
		if !tm.is(t, resource.Condition) {
			continue
		}
		properties := tm.value(t, &resource.Properties).(map[string]any)
		switch resource.Type {
		case "AWS::Serverless::HttpApi":
			made["API"] = properties
		case "AWS::Serverless::Function":
			made.function(t, strings.TrimSuffix(name, "Function"), globals, properties)
		case "AWS::ApiGatewayV2::DomainName":
			made["domain"] = properties
		case "AWS::ApiGatewayV2::ApiMapping":
			made["mapping of the domain"] = properties
		case "AWS::Route53::RecordSet":
			made["record of the domain"] = properties
		case "AWS::IAM::Policy":
			made.right(properties["Roles"].([]any)[0], properties["PolicyDocument"])
		case "AWS::DynamoDB::Table":
			properties["Stays"] = resource.DeletionPolicy == "RetainExceptOnCreate"
			made["table "+name] = properties
		case "AWS::Logs::LogGroup":
			made["logs "+name] = properties
		case "AWS::SQS::Queue":
			made["queue "+name] = properties
		case "AWS::CloudWatch::Dashboard":
			made["dashboard"] = parsed(t, properties["DashboardBody"])
		case "AWS::SecretsManager::Secret":
			made["secret "+name] = properties["Description"]
			made["text of "+name] = properties["SecretString"]
		case "AWS::CloudWatch::Alarm":
			made["alarm "+name] = properties
		default:
			t.Errorf("%s: the test does not know %s", name, resource.Type)
		}
	}
	for name, output := range tm.Outputs {
		if tm.is(t, output.Condition) {
			made["output "+snake(name)] = tm.value(t, &output.Value)
		}
	}
	return made
}

// function adds a function with what invokes it.
func (made things) function(t *testing.T, name string, globals, own map[string]any) {
	t.Helper()
	f := maps.Clone(globals)
	maps.Copy(f, own)
	variables := maps.Clone(globals["Environment"].(map[string]any)["Variables"].(map[string]any))
	if environment, ok := own["Environment"].(map[string]any); ok {
		maps.Copy(variables, environment["Variables"].(map[string]any))
	}
	f["Environment"] = variables
	roles := []string{"AWSLambdaBasicExecutionRole"} // SAM gives it to each
	if f["Tracing"] == "Disabled" {
		delete(f, "Tracing")
	} else {
		roles = append(roles, "AWSXRayDaemonWriteAccess") // SAM gives it or, in some partitions, its twin AWSXrayWriteOnlyAccess
	}
	for _, event := range own["Events"].(map[string]any) {
		properties := event.(map[string]any)["Properties"].(map[string]any)
		switch kind := event.(map[string]any)["Type"]; kind {
		case "HttpApi":
			key := "$default"
			if path, ok := properties["Path"]; ok {
				key = text(properties["Method"]) + " " + text(path)
			}
			made["route "+key] = map[string]any{"to": name, "version": properties["PayloadFormatVersion"], "of": properties["ApiId"]}
			made["invocation of "+name+" by the API"] = true
		case "SQS":
			roles = append(roles, "AWSLambdaSQSQueueExecutionRole") // as SAM does
			made["notices of "+name] = properties
		case "ScheduleV2":
			delete(properties, "OmitName")
			made["schedule of "+name] = properties
			made["invocation of "+name+" by its schedule"] = true
		default:
			t.Errorf("%s: the test does not know events of %s", name, kind)
		}
	}
	slices.Sort(roles)
	made["roles of "+name] = roles
	for _, policy := range own["Policies"].([]any) {
		made.right(name+"FunctionRole", policy)
	}
	delete(f, "Events")
	delete(f, "Policies")
	made["function "+name] = f
}

// parsed returns what a text of JSON says.
func parsed(t *testing.T, body any) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text(body)), &v); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return v
}

// right adds the statements of a policy, each by the role and the resources that it is about.
func (made things) right(role, policy any) {
	for _, s := range policy.(map[string]any)["Statement"].([]any) {
		statement := s.(map[string]any)
		resources, several := statement["Resource"].([]any)
		if !several {
			resources = []any{statement["Resource"]}
		}
		var names []string
		for _, r := range resources {
			names = append(names, text(r))
		}
		of := "right of " + text(role) + " on " + strings.Join(names, " ")
		actions, _ := made[of].(map[string]bool)
		if actions == nil {
			actions = map[string]bool{}
		}
		for _, action := range statement["Action"].([]any) {
			actions[text(statement["Effect"])+" "+text(action)] = true
		}
		made[of] = actions
	}
}
