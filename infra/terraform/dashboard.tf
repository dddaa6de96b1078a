# What CloudWatch shows of the whole; docs/runbook.md says how to read it.

data "aws_region" "current" {}

resource "aws_cloudwatch_dashboard" "dashboard" {
  dashboard_name = var.name
  dashboard_body = jsonencode({
    widgets = [
      {
        type = "metric", x = 0, y = 0, width = 12, height = 6
        properties = {
          title = "Requests", region = data.aws_region.current.id, stat = "Sum", period = 60
          metrics = [
            ["AWS/ApiGateway", "Count", "ApiId", aws_apigatewayv2_api.api.id],
            ["AWS/ApiGateway", "4xx", "ApiId", aws_apigatewayv2_api.api.id],
            ["AWS/ApiGateway", "5xx", "ApiId", aws_apigatewayv2_api.api.id],
          ]
        }
      },
      {
        type = "metric", x = 12, y = 0, width = 12, height = 6
        properties = {
          title = "Requests: milliseconds, median and slowest percent", region = data.aws_region.current.id, stat = "p99", period = 60
          metrics = [
            ["AWS/ApiGateway", "Latency", "ApiId", aws_apigatewayv2_api.api.id, { stat = "p50" }],
            ["AWS/ApiGateway", "Latency", "ApiId", aws_apigatewayv2_api.api.id],
          ]
        }
      },
      {
        type = "metric", x = 0, y = 6, width = 12, height = 6
        properties = {
          title = "Tasks: seconds that the oldest waits, and that what is due is late", region = data.aws_region.current.id, stat = "Maximum", period = 60
          metrics = [
            ["Millrace", "millrace_oldest_wait_seconds", "store", "dynamodb:${var.table_prefix}"],
            ["Millrace", "millrace_due_lag_seconds", "store", "dynamodb:${var.table_prefix}"],
          ]
        }
      },
      {
        type = "metric", x = 12, y = 6, width = 12, height = 6
        properties = {
          title = "Leases lost, ticks missed", region = data.aws_region.current.id, stat = "Sum", period = 60
          metrics = [
            ["Millrace", "millrace_leases_lost_total", "store", "dynamodb:${var.table_prefix}"],
            ["Millrace", "millrace_misfires_total", "store", "dynamodb:${var.table_prefix}"],
          ]
        }
      },
      {
        type = "metric", x = 0, y = 12, width = 12, height = 6
        properties = {
          title = "Notices that wait, and dead ones", region = data.aws_region.current.id, stat = "Maximum", period = 60
          metrics = [
            ["AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", aws_sqs_queue.notices.name],
            ["AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", aws_sqs_queue.dead_notices.name],
          ]
        }
      },
      {
        type = "metric", x = 12, y = 12, width = 12, height = 6
        properties = {
          title = "Invocations", region = data.aws_region.current.id, stat = "Sum", period = 60
          metrics = [
            ["AWS/Lambda", "Invocations", "FunctionName", module.emit.name],
            ["AWS/Lambda", "Invocations", "FunctionName", module.acknowledge.name],
            ["AWS/Lambda", "Invocations", "FunctionName", module.read_after.name],
            ["AWS/Lambda", "Invocations", "FunctionName", module.snapshot.name],
            ["AWS/Lambda", "Invocations", "FunctionName", module.sweep.name],
            ["AWS/Lambda", "Invocations", "FunctionName", module.enqueue_task.name],
            ["AWS/Lambda", "Invocations", "FunctionName", module.tasks.name],
            ["AWS/Lambda", "Invocations", "FunctionName", module.define.name],
            ["AWS/Lambda", "Invocations", "FunctionName", module.lease.name],
            ["AWS/Lambda", "Invocations", "FunctionName", module.dashboard.name],
            ["AWS/Lambda", "Invocations", "FunctionName", module.worker.name],
            ["AWS/Lambda", "Invocations", "FunctionName", module.cron.name],
          ]
        }
      },
      {
        type = "metric", x = 0, y = 18, width = 12, height = 6
        properties = {
          title = "Invocations that failed", region = data.aws_region.current.id, stat = "Sum", period = 60
          metrics = [
            ["AWS/Lambda", "Errors", "FunctionName", module.emit.name],
            ["AWS/Lambda", "Errors", "FunctionName", module.acknowledge.name],
            ["AWS/Lambda", "Errors", "FunctionName", module.read_after.name],
            ["AWS/Lambda", "Errors", "FunctionName", module.snapshot.name],
            ["AWS/Lambda", "Errors", "FunctionName", module.sweep.name],
            ["AWS/Lambda", "Errors", "FunctionName", module.enqueue_task.name],
            ["AWS/Lambda", "Errors", "FunctionName", module.tasks.name],
            ["AWS/Lambda", "Errors", "FunctionName", module.define.name],
            ["AWS/Lambda", "Errors", "FunctionName", module.lease.name],
            ["AWS/Lambda", "Errors", "FunctionName", module.dashboard.name],
            ["AWS/Lambda", "Errors", "FunctionName", module.worker.name],
            ["AWS/Lambda", "Errors", "FunctionName", module.cron.name],
          ]
        }
      },
      {
        type = "metric", x = 12, y = 18, width = 12, height = 6
        properties = {
          title = "Invocations turned away", region = data.aws_region.current.id, stat = "Sum", period = 60
          metrics = [
            ["AWS/Lambda", "Throttles", "FunctionName", module.emit.name],
            ["AWS/Lambda", "Throttles", "FunctionName", module.acknowledge.name],
            ["AWS/Lambda", "Throttles", "FunctionName", module.read_after.name],
            ["AWS/Lambda", "Throttles", "FunctionName", module.snapshot.name],
            ["AWS/Lambda", "Throttles", "FunctionName", module.sweep.name],
            ["AWS/Lambda", "Throttles", "FunctionName", module.enqueue_task.name],
            ["AWS/Lambda", "Throttles", "FunctionName", module.tasks.name],
            ["AWS/Lambda", "Throttles", "FunctionName", module.define.name],
            ["AWS/Lambda", "Throttles", "FunctionName", module.lease.name],
            ["AWS/Lambda", "Throttles", "FunctionName", module.dashboard.name],
            ["AWS/Lambda", "Throttles", "FunctionName", module.worker.name],
            ["AWS/Lambda", "Throttles", "FunctionName", module.cron.name],
          ]
        }
      },
      {
        type = "metric", x = 0, y = 24, width = 12, height = 6
        properties = {
          title = "Tables: units", region = data.aws_region.current.id, stat = "Sum", period = 60
          metrics = [
            ["AWS/DynamoDB", "ConsumedReadCapacityUnits", "TableName", aws_dynamodb_table.table["journal"].name],
            ["AWS/DynamoDB", "ConsumedWriteCapacityUnits", "TableName", aws_dynamodb_table.table["journal"].name],
            ["AWS/DynamoDB", "ConsumedReadCapacityUnits", "TableName", aws_dynamodb_table.table["work"].name],
            ["AWS/DynamoDB", "ConsumedWriteCapacityUnits", "TableName", aws_dynamodb_table.table["work"].name],
            ["AWS/DynamoDB", "ConsumedReadCapacityUnits", "TableName", aws_dynamodb_table.table["definitions"].name],
            ["AWS/DynamoDB", "ConsumedWriteCapacityUnits", "TableName", aws_dynamodb_table.table["definitions"].name],
          ]
        }
      },
      {
        type = "metric", x = 12, y = 24, width = 12, height = 6
        properties = {
          title = "Tables: throttled", region = data.aws_region.current.id, stat = "Sum", period = 60
          metrics = [
            ["AWS/DynamoDB", "ReadThrottleEvents", "TableName", aws_dynamodb_table.table["journal"].name],
            ["AWS/DynamoDB", "WriteThrottleEvents", "TableName", aws_dynamodb_table.table["journal"].name],
            ["AWS/DynamoDB", "ReadThrottleEvents", "TableName", aws_dynamodb_table.table["work"].name],
            ["AWS/DynamoDB", "WriteThrottleEvents", "TableName", aws_dynamodb_table.table["work"].name],
            ["AWS/DynamoDB", "ReadThrottleEvents", "TableName", aws_dynamodb_table.table["definitions"].name],
            ["AWS/DynamoDB", "WriteThrottleEvents", "TableName", aws_dynamodb_table.table["definitions"].name],
          ]
        }
      },
    ]
  })
}
