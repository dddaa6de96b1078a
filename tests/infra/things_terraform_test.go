package infra_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// symbol returns what an attribute of a resource is in template.yaml, as far as the test needs it.
func symbol(module, kind, name, key, attribute string) string {
	function := camel(module)
	switch kind {
	case "module": // the functions, seen from the root
		return camel(name) + map[string]string{"name": "Function", "arn": "Function.Arn", "role": "FunctionRole"}[attribute]
	case "aws_lambda_function":
		return function + map[string]string{"function_name": "Function", "arn": "Function.Arn"}[attribute]
	case "aws_cloudwatch_log_group":
		if module == "" {
			function = camel(name)
		}
		return function + map[string]string{"name": "Logs", "arn": "Logs.Arn"}[attribute]
	case "aws_dynamodb_table":
		return camel(key) + map[string]string{"name": "Table", "arn": "Table.Arn"}[attribute]
	case "aws_region":
		return "AWS::Region"
	case "aws_secretsmanager_secret":
		return camel(name) + map[string]string{"arn": ".Id"}[attribute]
	case "aws_sqs_queue":
		return camel(name) + map[string]string{"url": "", "arn": ".Arn", "name": ".QueueName"}[attribute]
	case "aws_apigatewayv2_api":
		if attribute == "api_endpoint" {
			return "https://Api.execute-api.AWS::Region.AWS::URLSuffix"
		}
		return "Api" + map[string]string{"execution_arn": ".ExecutionArn"}[attribute]
	case "aws_apigatewayv2_stage":
		return "Api.Stage"
	case "aws_apigatewayv2_domain_name":
		return "Domain" + map[string]string{"target_domain_name": ".RegionalDomainName", "hosted_zone_id": ".RegionalHostedZoneId"}[attribute]
	case "aws_iam_role":
		if module != "" {
			return function + "FunctionRole"
		}
		return camel(key) + "ScheduleRole"
	}
	return kind + "." + attribute
}

// attributes are what is left of a resource's attributes; what the test does not know stays, and fails it.
type attributes map[string]any

// take returns an attribute, or, by a path such as target.retry_policy, one of a block within; nil if it is not there.
func (a attributes) take(path string) any {
	name, rest, within := strings.Cut(path, ".")
	v := a[name]
	if !within {
		delete(a, name)
		return v
	}
	block, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	v = attributes(block).take(rest)
	if len(block) == 0 {
		delete(a, name)
	}
	return v
}

// as returns attributes by the template's names for them; those that are not there are left out.
func (a attributes) as(names map[string]string) map[string]any {
	m := map[string]any{}
	for path, name := range names {
		if v := a.take(path); v != nil {
			m[name] = v
		}
	}
	return m
}

// ofTerraform returns what Terraform makes.
func ofTerraform(t *testing.T, root *module) things {
	t.Helper()
	made := things{}
	for name, value := range root.outputs(t) {
		if value != nil {
			made["output "+name] = value
		}
	}
	all := root.resources(t)
	for _, r := range all { // functions first: others add to them
		if r.kind == "aws_lambda_function" {
			made["function "+camel(r.module)] = lambda(r.attributes)
			made["roles of "+camel(r.module)] = []string{}
		}
	}
	for _, r := range all {
		add, known := kinds[r.kind]
		if !known {
			t.Errorf("%s: the test does not know such resources", r)
			continue
		}
		add(t, made, r, r.attributes)
		if len(r.attributes) > 0 {
			t.Errorf("%s: the test does not know %v", r, r.attributes)
		}
	}
	return made
}

func lambda(a attributes) map[string]any {
	for _, path := range []string{"function_name", "role", "lifecycle", "filename", "source_code_hash"} {
		a.take(path)
	}
	f := a.as(map[string]string{"runtime": "Runtime", "handler": "Handler", "architectures": "Architectures", "memory_size": "MemorySize",
		"timeout": "Timeout", "environment.variables": "Environment"})
	if mode := a.take("tracing_config.mode"); mode != "PassThrough" { // as Lambda has it where it is not said
		f["Tracing"] = mode
	}
	f["LoggingConfig"] = map[string]any{"LogGroup": a.take("logging_config.log_group")}
	if format := a.take("logging_config.log_format"); format != "Text" { // as Lambda has it where it is not said
		f["LoggingConfig"].(map[string]any)["LogFormat"] = format
	}
	return f
}

type adding func(t *testing.T, made things, r resource, a attributes)

// kinds add what a resource of that kind is. Names that only Terraform needs are dropped.
var kinds = map[string]adding{
	"aws_lambda_function": func(_ *testing.T, made things, r resource, _ attributes) {
		made["function "+camel(r.module)].(map[string]any)["CodeUri"] = "functions/" + r.module + "/"
	},
	"aws_lambda_function_recursion_config": func(_ *testing.T, made things, r resource, a attributes) {
		a.take("function_name")
		if loop := a.take("recursive_loop"); loop != "Terminate" { // as Lambda has it where it is not said
			made["function "+camel(r.module)].(map[string]any)["RecursiveLoop"] = loop
		}
	},
	"aws_lambda_function_event_invoke_config": func(_ *testing.T, made things, r resource, a attributes) {
		a.take("function_name")
		made["function "+camel(r.module)].(map[string]any)["EventInvokeConfig"] = a.as(map[string]string{"maximum_retry_attempts": "MaximumRetryAttempts"})
	},
	"aws_lambda_permission": func(t *testing.T, made things, r resource, a attributes) {
		got := a.as(map[string]string{"action": "a", "principal": "p", "source_arn": "s", "function_name": "f"})
		want := map[string]any{"a": "lambda:InvokeFunction", "p": "apigateway.amazonaws.com", "s": "Api.ExecutionArn/*", "f": camel(r.module) + "Function"}
		compare(t, want, got)
		made["invocation of "+camel(r.module)+" by the API"] = true
	},
	"aws_lambda_event_source_mapping": func(_ *testing.T, made things, _ resource, a attributes) {
		function, _ := strings.CutSuffix(text(a.take("function_name")), "Function.Arn")
		made["notices of "+function] = a.as(map[string]string{"event_source_arn": "Queue", "batch_size": "BatchSize",
			"function_response_types": "FunctionResponseTypes"})
		made["notices of "+function].(map[string]any)["ScalingConfig"] = a.as(map[string]string{"scaling_config.maximum_concurrency": "MaximumConcurrency"})
	},
	"aws_apigatewayv2_api": func(t *testing.T, _ things, _ resource, a attributes) {
		a.take("name")
		a.take("lifecycle")
		if protocol := a.take("protocol_type"); protocol != "HTTP" {
			t.Errorf("the API is of %v", protocol)
		}
	},
	"aws_apigatewayv2_stage": func(t *testing.T, made things, _ resource, a attributes) {
		if deployed := a.take("auto_deploy"); deployed != true || a.take("api_id") != "Api" {
			t.Error("the stage is not deployed")
		}
		made["API"] = map[string]any{
			"StageName": a.take("name"),
			"DefaultRouteSettings": a.as(map[string]string{"default_route_settings.throttling_burst_limit": "ThrottlingBurstLimit",
				"default_route_settings.throttling_rate_limit": "ThrottlingRateLimit"}),
			"AccessLogSettings": a.as(map[string]string{"access_log_settings.destination_arn": "DestinationArn", "access_log_settings.format": "Format"}),
		}
	},
	"aws_apigatewayv2_domain_name": func(_ *testing.T, made things, _ resource, a attributes) {
		made["domain"] = map[string]any{"DomainName": a.take("domain_name"), "DomainNameConfigurations": []any{
			a.as(map[string]string{"domain_name_configuration.certificate_arn": "CertificateArn", "domain_name_configuration.endpoint_type": "EndpointType",
				"domain_name_configuration.security_policy": "SecurityPolicy"}),
		}}
	},
	"aws_apigatewayv2_api_mapping": func(_ *testing.T, made things, _ resource, a attributes) {
		made["mapping of the domain"] = a.as(map[string]string{"domain_name": "DomainName", "api_id": "ApiId", "stage": "Stage"})
	},
	"aws_route53_record": func(_ *testing.T, made things, _ resource, a attributes) {
		record := a.as(map[string]string{"zone_id": "HostedZoneId", "name": "Name", "type": "Type"})
		record["AliasTarget"] = a.as(map[string]string{"alias.name": "DNSName", "alias.zone_id": "HostedZoneId", "alias.evaluate_target_health": "EvaluateTargetHealth"})
		made["record of the domain"] = record
	},
	"aws_apigatewayv2_integration": func(t *testing.T, _ things, r resource, a attributes) {
		got := a.as(map[string]string{"api_id": "i", "integration_type": "t", "integration_uri": "u", "payload_format_version": "v"})
		compare(t, map[string]any{"i": "Api", "t": "AWS_PROXY", "u": camel(r.module) + "Function.Arn", "v": "2.0"}, got)
	},
	"aws_apigatewayv2_route": func(_ *testing.T, made things, r resource, a attributes) {
		a.take("target")
		made["route "+text(a.take("route_key"))] = map[string]any{"to": camel(r.module), "version": "2.0", "of": a.take("api_id")}
	},
	"aws_cloudwatch_log_group": func(_ *testing.T, made things, r resource, a attributes) {
		a.take("name")
		made["logs "+symbol(r.module, r.kind, r.name, "", "name")] = a.as(map[string]string{"retention_in_days": "RetentionInDays"})
	},
	"aws_secretsmanager_secret": func(_ *testing.T, made things, r resource, a attributes) {
		a.take("name_prefix")
		made["secret "+camel(r.name)] = a.take("description")
	},
	"aws_secretsmanager_secret_version": func(_ *testing.T, made things, _ resource, a attributes) {
		made["text of "+text(a.take("secret_id"))] = a.take("secret_string")
	},
	"aws_cloudwatch_dashboard": func(t *testing.T, made things, _ resource, a attributes) {
		a.take("dashboard_name")
		made["dashboard"] = parsed(t, a.take("dashboard_body"))
	},
	"aws_cloudwatch_metric_alarm": alarm,
	"aws_dynamodb_table":          table,
	"aws_sqs_queue":               queue,
	"aws_scheduler_schedule": func(t *testing.T, made things, _ resource, a attributes) {
		a.take("name")
		function, _ := strings.CutSuffix(text(a.take("target.arn")), "Function.Arn")
		if mode := a.take("flexible_time_window.mode"); mode != "OFF" || a.take("target.role_arn") != function+"ScheduleRole" {
			t.Errorf("the schedule of %s", function)
		}
		made["schedule of "+function] = map[string]any{"ScheduleExpression": a.take("schedule_expression"), "Input": a.take("target.input"),
			"RetryPolicy": a.as(map[string]string{"target.retry_policy.maximum_retry_attempts": "MaximumRetryAttempts"})}
	},
	"aws_iam_role": func(t *testing.T, _ things, r resource, a attributes) {
		a.take("name")
		service := "lambda.amazonaws.com"
		if r.module == "" {
			service = "scheduler.amazonaws.com"
		}
		if trust := text(a.take("assume_role_policy")); !strings.Contains(trust, `"Principal":{"Service":"`+service+`"}`) {
			t.Errorf("%s is for %s", r, trust)
		}
	},
	"aws_iam_role_policy_attachment": func(_ *testing.T, made things, r resource, a attributes) {
		function, _ := strings.CutSuffix(text(a.take("role")), "FunctionRole")
		arn := strings.Split(text(a.take("policy_arn")), "/")
		of := "roles of " + function
		made[of] = slices.Sorted(slices.Values(append(made[of].([]string), arn[len(arn)-1])))
	},
	"aws_iam_role_policy": func(t *testing.T, made things, r resource, a attributes) {
		a.take("name")
		var policy map[string]any
		if err := json.Unmarshal([]byte(text(a.take("policy"))), &policy); err != nil {
			t.Fatal(err)
		}
		role := text(a.take("role"))
		if function, of := strings.CutSuffix(role, "ScheduleRole"); of {
			rights := things{}
			rights.right(role, policy)
			compare(t, things{"right of " + role + " on " + function + "Function.Arn": map[string]bool{"Allow lambda:InvokeFunction": true}}, rights)
			made["invocation of "+function+" by its schedule"] = true
			return
		}
		made.right(role, policy)
	},
}

func alarm(_ *testing.T, made things, r resource, a attributes) {
	a.take("alarm_name")
	dimensions := []any{}
	for name, value := range a.take("dimensions").(map[string]any) {
		dimensions = append(dimensions, map[string]any{"Name": name, "Value": value})
	}
	m := a.as(map[string]string{"alarm_description": "AlarmDescription", "namespace": "Namespace", "metric_name": "MetricName",
		"statistic": "Statistic", "period": "Period", "evaluation_periods": "EvaluationPeriods", "datapoints_to_alarm": "DatapointsToAlarm",
		"threshold": "Threshold", "comparison_operator": "ComparisonOperator", "treat_missing_data": "TreatMissingData", "alarm_actions": "AlarmActions"})
	m["Dimensions"] = dimensions
	if actions, ok := m["AlarmActions"].([]any); ok && len(actions) == 0 {
		delete(m, "AlarmActions")
	}
	made["alarm "+camel(r.module)+camel(r.name)] = m
}

func table(_ *testing.T, made things, r resource, a attributes) {
	m := a.as(map[string]string{"name": "TableName", "billing_mode": "BillingMode", "deletion_protection_enabled": "DeletionProtectionEnabled"})
	m["KeySchema"] = []any{map[string]any{"AttributeName": a.take("hash_key"), "KeyType": "HASH"},
		map[string]any{"AttributeName": a.take("range_key"), "KeyType": "RANGE"}}
	definitions := []any{}
	for _, d := range a.take("attribute").([]any) {
		definitions = append(definitions, attributes(d.(map[string]any)).as(map[string]string{"name": "AttributeName", "type": "AttributeType"}))
	}
	m["AttributeDefinitions"] = definitions
	m["TimeToLiveSpecification"] = a.as(map[string]string{"ttl.attribute_name": "AttributeName", "ttl.enabled": "Enabled"})
	m["PointInTimeRecoverySpecification"] = a.as(map[string]string{"point_in_time_recovery.enabled": "PointInTimeRecoveryEnabled"})
	m["SSESpecification"] = a.as(map[string]string{"server_side_encryption.enabled": "SSEEnabled"})
	m["Stays"] = a.take("lifecycle.prevent_destroy") == true
	made["table "+symbol("", r.kind, r.name, r.key, "name")] = m
}

func queue(t *testing.T, made things, r resource, a attributes) {
	a.take("name")
	m := a.as(map[string]string{"visibility_timeout_seconds": "VisibilityTimeout", "message_retention_seconds": "MessageRetentionPeriod",
		"sqs_managed_sse_enabled": "SqsManagedSseEnabled"})
	if redrive := a.take("redrive_policy"); redrive != nil {
		var policy any
		if err := json.Unmarshal([]byte(text(redrive)), &policy); err != nil {
			t.Fatal(err)
		}
		m["RedrivePolicy"] = policy
	}
	made["queue "+camel(r.name)] = m
}
