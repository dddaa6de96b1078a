# Millrace on AWS: the same as template.yaml makes, for those who deploy by OpenTofu or Terraform.

locals {
  environment = { # of every function
    MILLRACE_STORE   = "dynamodb:${var.table_prefix}"
    MILLRACE_LOG     = var.log_level
    MILLRACE_SECRETS = "aws:${aws_secretsmanager_secret.secrets.arn}"
    MILLRACE_CONFIG = (
      var.history_age != ""
      ? "{journal: {retention: {events: ${var.retention_events}, age: ${var.retention_age}}}, history: {age: ${var.history_age}}, dashboard: {mask: [${var.dashboard_mask}]}, cors: {origins: [${var.cors_origins}]}}"
      : "{journal: {retention: {events: ${var.retention_events}, age: ${var.retention_age}}}, dashboard: {mask: [${var.dashboard_mask}]}, cors: {origins: [${var.cors_origins}]}}"
    )
  }
  bell = { MILLRACE_BELL = "sqs:${aws_sqs_queue.notices.url}" } # of the functions that wake workers

  common = { # what function/ wants to know for each of them
    prefix             = var.name
    build              = var.build == "" ? "${path.module}/../../bin" : var.build
    architecture       = var.architecture
    log_retention_days = var.log_retention_days
    tracing            = var.tracing
    alarm_actions      = local.alarm_actions
    api                = aws_apigatewayv2_api.api.id
    api_execution_arn  = aws_apigatewayv2_api.api.execution_arn
    secrets            = aws_secretsmanager_secret.secrets.arn
  }
  alarm_actions = [for topic in [var.alarm_topic_arn] : topic if topic != ""]
}
