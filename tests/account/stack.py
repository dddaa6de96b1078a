"""Deploys template.yaml to an emulated account, as `sam deploy` does to a real one, and prints what came of it as JSON.

    stack.py deploy STACK PREFIX BINARIES [NAME=VALUE...]   creates or updates the stack; BINARIES is a folder with one of each function
    stack.py delete STACK
    stack.py invoke STACK FUNCTION PAYLOAD                  invokes the function with that logical id
    stack.py secret STACK [TEXT]                            what the stack's secret holds, or what it holds from now on
    stack.py variables STACK FUNCTION                       the function's variables
    stack.py drop TABLE                                     what the account says against deleting the table; null if it is deleted
    stack.py tables                                         the names of the tables there are

WITHOUT names an action that all policies are deprived of; with FAILING, a resource that cannot be made comes after the tables. What the emulator does not understand is rewritten in adapt().
"""

import io
import json
import os
import sys
import time
import zipfile

import boto3
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

ENDPOINT = os.environ["MILLRACE_TEST_ACCOUNT"]
BUCKET = "code"
os.environ["AWS_DEFAULT_REGION"] = "us-east-1"
MANAGED = "arn:aws:iam::aws:policy/"


def client(service):
    return boto3.client(service, endpoint_url=ENDPOINT, aws_access_key_id="test", aws_secret_access_key="test")


def upload(name, body):
    client("s3").put_object(Bucket=BUCKET, Key=name, Body=body)
    return f"s3://{BUCKET}/{name}"


def package(binary):
    """Returns a function's archive as Lambda wants it."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as z:
        entry = zipfile.ZipInfo("bootstrap")
        entry.external_attr = 0o755 << 16
        with open(binary, "rb") as f:
            z.writestr(entry, f.read())
    return archive.getvalue()


def expand(template, parameters):
    """Returns the template without SAM's macros."""
    roles = ["service-role/AWSLambdaBasicExecutionRole", "service-role/AWSLambdaSQSQueueExecutionRole", "AWSXRayDaemonWriteAccess"]
    expanded = Translator({os.path.basename(role): MANAGED + role for role in roles}, Parser()).translate(template, parameters)
    expanded.pop("Transform", None)
    return expanded


def adapt(resources):
    """Rewrites what the emulator does not know: routes within the API's body, a parameter as a number, the scheduler's placeholders,
    and that the right to send a message is the right to send several."""
    body = resources["Api"]["Properties"].pop("Body")
    resources["Api"]["Properties"] = {"Name": {"Ref": "AWS::StackName"}, "ProtocolType": "HTTP"}
    routes = [(path, method, way) for path, methods in body["paths"].items() for method, way in methods.items()]
    for n, (path, method, way) in enumerate(routes):
        function = way["x-amazon-apigateway-integration"]["uri"]["Fn::Sub"].split("functions/${")[1].split(".Arn")[0]
        integration, route = f"Integration{n}", f"Route{n}"
        key = path if path == "$default" else f"{'ANY' if method.startswith('x-') else method.upper()} {path}"
        resources[integration] = {
            "Type": "AWS::ApiGatewayV2::Integration",
            "Properties": {
                "ApiId": {"Ref": "Api"}, "IntegrationType": "AWS_PROXY", "PayloadFormatVersion": "2.0",
                "IntegrationUri": {"Fn::GetAtt": [function, "Arn"]},
            },
        }
        target = {"Fn::Join": ["/", ["integrations", {"Ref": integration}]]}
        resources[route] = {
            "Type": "AWS::ApiGatewayV2::Route", "Properties": {"ApiId": {"Ref": "Api"}, "RouteKey": key, "Target": target}
        }
    for resource in resources.values():
        if resource["Type"] == "AWS::Lambda::EventSourceMapping":
            resource["Properties"]["ScalingConfig"] = {"MaximumConcurrency": 16}
        if resource["Type"] == "AWS::Scheduler::Schedule":
            target = resource["Properties"]["Target"]
            target["Input"] = target["Input"].replace("<aws.scheduler.scheduled-time>", "2026-01-01T00:00:00Z")
        for statement in statements(resource):
            if "sqs:SendMessage" in statement["Action"]:
                statement["Action"].append("sqs:SendMessageBatch")


def statements(resource):
    """Returns the statements of a resource's own policies, of the template or of what it is expanded to."""
    policies = resource.get("Properties", {}).get("Policies", [])
    return [s for p in policies for s in p.get("PolicyDocument", p)["Statement"]]


def deprive(template, action):
    for resource in template["Resources"].values():
        for statement in statements(resource):
            statement["Action"] = [a for a in statement["Action"] if a != action]


def deploy(stack, prefix, binaries, *values):
    storage = client("s3")
    if BUCKET not in [b["Name"] for b in storage.list_buckets()["Buckets"]]:
        storage.create_bucket(Bucket=BUCKET)
    with open(os.path.join(os.path.dirname(__file__), "..", "..", "template.yaml")) as f:
        template = yaml_parse(f.read())
    if action := os.environ.get("WITHOUT"):
        deprive(template, action)
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            name = os.path.basename(resource["Properties"]["CodeUri"].rstrip("/"))
            resource["Properties"]["CodeUri"] = upload(name + ".zip", package(os.path.join(binaries, name)))
    parameters = {"TablePrefix": prefix, "Architecture": "x86_64", **dict(v.split("=", 1) for v in values)}
    expanded = expand(template, parameters)
    adapt(expanded["Resources"])
    if os.environ.get("FAILING"):
        expanded["Resources"]["Failing"] = {  # there is a bucket of that name
            "Type": "AWS::S3::Bucket", "DependsOn": ["JournalTable", "WorkTable"], "Properties": {"BucketName": BUCKET}
        }
    upload(stack + ".json", json.dumps(expanded, default=str).encode())
    formation = client("cloudformation")
    there = stack in [s["StackName"] for s in formation.describe_stacks()["Stacks"] if s["StackStatus"] != "DELETE_COMPLETE"]
    (formation.update_stack if there else formation.create_stack)(
        StackName=stack, TemplateURL=f"{ENDPOINT}/{BUCKET}/{stack}.json", Capabilities=["CAPABILITY_IAM"],
        Parameters=[{"ParameterKey": k, "ParameterValue": v} for k, v in parameters.items()],
    )
    return settled(stack)


def settled(stack):
    """Waits until nothing of a stack changes any more."""
    formation = client("cloudformation")
    while True:
        state = formation.describe_stacks(StackName=stack)["Stacks"][0]
        if not state["StackStatus"].endswith("IN_PROGRESS"):
            break
        time.sleep(0.2)
    events = formation.describe_stack_events(StackName=stack)["StackEvents"]
    failed = [
        f"{e['LogicalResourceId']} {e['ResourceStatus']}: {e.get('ResourceStatusReason', '')}"
        for e in events if "FAILED" in e["ResourceStatus"]
    ]
    outputs = {o["OutputKey"]: o["OutputValue"] for o in state.get("Outputs", [])}
    return {"status": state["StackStatus"], "outputs": outputs, "failed": failed}


def delete(stack):
    formation = client("cloudformation")
    stack_id = formation.describe_stacks(StackName=stack)["Stacks"][0]["StackId"]
    formation.delete_stack(StackName=stack)
    return settled(stack_id)


def invoke(stack, function, payload):
    response = client("lambda").invoke(FunctionName=physical(stack, function), Payload=payload.encode())
    return {"error": response.get("FunctionError", ""), "payload": response["Payload"].read().decode()}


def physical(stack, logical):
    resources = client("cloudformation").describe_stack_resources(StackName=stack)["StackResources"]
    return next(r["PhysicalResourceId"] for r in resources if r["LogicalResourceId"] == logical)


def secret(stack, text=None):
    name = physical(stack, "Secrets")
    if text is not None:
        client("secretsmanager").put_secret_value(SecretId=name, SecretString=text)
    return client("secretsmanager").get_secret_value(SecretId=name)["SecretString"]


def variables(stack, function):
    return json.dumps(client("lambda").get_function_configuration(FunctionName=physical(stack, function))["Environment"])


def drop(table):
    try:
        client("dynamodb").delete_table(TableName=table)
    except client("dynamodb").exceptions.ClientError as e:
        return str(e)


def tables():
    return client("dynamodb").list_tables()["TableNames"]


if __name__ == "__main__":
    does = {f.__name__: f for f in (deploy, delete, invoke, secret, variables, drop, tables)}
    print(json.dumps(does[sys.argv[1]](*sys.argv[2:])))
