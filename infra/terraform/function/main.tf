# One function: its program, its role, its logs, its routes, and its two alarms.

locals {
  full_name = "${var.common.prefix}-${var.name}"
  all       = [{ resources = [var.common.secrets], actions = ["secretsmanager:GetSecretValue"] }] # tokens and the signing secret
  title     = join("", [for word in split("-", var.name) : title(word)]) # ReadAfter, as in template.yaml
}

data "archive_file" "program" {
  type             = "zip"
  source_file      = "${var.common.build}/functions/${var.name}/bootstrap"
  output_file_mode = "0755"
  output_path      = "${var.common.build}/functions/${var.name}.zip"
}

resource "aws_lambda_function" "function" {
  function_name    = local.full_name
  role             = aws_iam_role.function.arn
  filename         = data.archive_file.program.output_path
  source_code_hash = data.archive_file.program.output_base64sha256
  runtime          = "provided.al2023"
  handler          = "bootstrap"
  architectures    = [var.common.architecture]
  memory_size      = var.memory
  timeout          = var.timeout

  environment {
    variables = var.environment
  }
  tracing_config {
    mode = var.common.tracing == "Active" ? "Active" : "PassThrough" # the latter is what Lambda does where nothing is said
  }
  logging_config {
    log_format = "Text" # lines are JSON already
    log_group  = aws_cloudwatch_log_group.function.name
  }
  lifecycle {
    precondition {
      condition     = trimspace(file("${var.common.build}/architecture")) == var.common.architecture
      error_message = "The functions were built for another processor than architecture says: make build ARCH=arm64, or ARCH=amd64 for x86_64."
    }
  }
  depends_on = [aws_iam_role_policy.function, aws_iam_role_policy_attachment.logs]
}

resource "aws_lambda_function_recursion_config" "function" {
  function_name  = aws_lambda_function.function.function_name
  recursive_loop = var.loop
}

resource "aws_lambda_function_event_invoke_config" "function" {
  count = var.repeated == null ? 0 : 1

  function_name          = aws_lambda_function.function.function_name
  maximum_retry_attempts = var.repeated
}

resource "aws_cloudwatch_log_group" "function" {
  name              = "/millrace/${var.common.prefix}/${var.name}"
  retention_in_days = var.common.log_retention_days
}

resource "aws_iam_role" "function" {
  name = local.full_name
  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Principal = { Service = "lambda.amazonaws.com" }, Action = "sts:AssumeRole" }]
  })
}

resource "aws_iam_role_policy" "function" {
  name = "data"
  role = aws_iam_role.function.name
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [for s in concat(local.all, var.policy) : { Effect = "Allow", Action = s.actions, Resource = s.resources }]
  })
}

resource "aws_iam_role_policy_attachment" "logs" { # the right to write its logs
  role       = aws_iam_role.function.name
  policy_arn = "arn:${data.aws_partition.current.partition}:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"
}

resource "aws_iam_role_policy_attachment" "traces" { # the right to write its traces
  count = var.common.tracing == "Active" ? 1 : 0

  role       = aws_iam_role.function.name
  policy_arn = "arn:${data.aws_partition.current.partition}:iam::aws:policy/AWSXRayDaemonWriteAccess"
}

data "aws_partition" "current" {}
