# Alarms of the whole; each function has two of its own. docs/runbook.md says what to do about each.

resource "aws_cloudwatch_metric_alarm" "sweep_missing" {
  alarm_name          = "${var.name}-SweepMissing"
  alarm_description   = "Millrace: no sweep for ten minutes, so nothing is evicted and snapshots become slow; look at the schedule and at its role."
  namespace           = "AWS/Lambda"
  metric_name         = "Invocations"
  dimensions          = { FunctionName = module.sweep.name }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 2
  threshold           = 1
  comparison_operator = "LessThanThreshold"
  treat_missing_data  = "breaching"
  alarm_actions       = local.alarm_actions
}

resource "aws_cloudwatch_metric_alarm" "cron_missing" {
  alarm_name          = "${var.name}-CronMissing"
  alarm_description   = "Millrace: no cron for ten minutes, so delayed tasks start late; look at the schedule and at its role."
  namespace           = "AWS/Lambda"
  metric_name         = "Invocations"
  dimensions          = { FunctionName = module.cron.name }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 2
  threshold           = 1
  comparison_operator = "LessThanThreshold"
  treat_missing_data  = "breaching"
  alarm_actions       = local.alarm_actions
}

resource "aws_cloudwatch_metric_alarm" "notices_dead" {
  alarm_name          = "${var.name}-NoticesDead"
  alarm_description   = "Millrace: three times a worker died with the same notifications, or could not read them. The sweep sends new ones, so that no task is lost; the worker's log group says why."
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateNumberOfMessagesVisible"
  dimensions          = { QueueName = aws_sqs_queue.dead_notices.name }
  statistic           = "Maximum"
  period              = 300
  evaluation_periods  = 1
  threshold           = 0
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
}

resource "aws_cloudwatch_metric_alarm" "notices_waiting" {
  alarm_name          = "${var.name}-NoticesWaiting"
  alarm_description   = "Millrace: notifications have been waiting for a quarter of an hour: all workers are busy. Raise WorkerConcurrency, or find out which tasks take so long."
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateNumberOfMessagesVisible"
  dimensions          = { QueueName = aws_sqs_queue.notices.name }
  statistic           = "Minimum"
  period              = 60
  evaluation_periods  = 15
  threshold           = 0
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
}

resource "aws_cloudwatch_metric_alarm" "api_failures" {
  alarm_name          = "${var.name}-ApiFailures"
  alarm_description   = "Millrace: requests get 5xx responses; the functions' log groups say why."
  namespace           = "AWS/ApiGateway"
  metric_name         = "5xx"
  dimensions          = { ApiId = aws_apigatewayv2_api.api.id }
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 5
  datapoints_to_alarm = 2
  threshold           = 0
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
}

resource "aws_cloudwatch_metric_alarm" "tasks_waiting" {
  alarm_name          = "${var.name}-TasksWaiting"
  alarm_description   = "Millrace: for a quarter of an hour a task that could start has been waiting for more than a quarter of an hour; raise WorkerConcurrency, or find out which tasks take so long."
  namespace           = "Millrace"
  metric_name         = "millrace_oldest_wait_seconds"
  dimensions          = { store = "dynamodb:${var.table_prefix}" }
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 15
  threshold           = 900
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
}

resource "aws_cloudwatch_metric_alarm" "tasks_late" {
  alarm_name          = "${var.name}-TasksLate"
  alarm_description   = "Millrace: what falls due starts more than two minutes late; look at cron and at the workers."
  namespace           = "Millrace"
  metric_name         = "millrace_due_lag_seconds"
  dimensions          = { store = "dynamodb:${var.table_prefix}" }
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 5
  threshold           = 120
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
}

resource "aws_cloudwatch_metric_alarm" "leases_lost" {
  alarm_name          = "${var.name}-LeasesLost"
  alarm_description   = "Millrace: for a quarter of an hour workers have not been heard of while they had tasks; these are repeated as their jobs say."
  namespace           = "Millrace"
  metric_name         = "millrace_leases_lost_total"
  dimensions          = { store = "dynamodb:${var.table_prefix}" }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 3
  threshold           = 0
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
}

resource "aws_cloudwatch_metric_alarm" "ticks_missed" {
  alarm_name          = "${var.name}-TicksMissed"
  alarm_description   = "Millrace: ticks of schedules have passed while nothing could make them; each schedule's misfire says what becomes of them."
  namespace           = "Millrace"
  metric_name         = "millrace_misfires_total"
  dimensions          = { store = "dynamodb:${var.table_prefix}" }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 1
  threshold           = 0
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
}

resource "aws_cloudwatch_metric_alarm" "journal_throttled" {
  alarm_name          = "${var.name}-JournalThrottled"
  alarm_description   = "Millrace: the journal's table turns writes away; they are repeated, and requests get slow or a 503."
  namespace           = "AWS/DynamoDB"
  metric_name         = "WriteThrottleEvents"
  dimensions          = { TableName = aws_dynamodb_table.table["journal"].name }
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 5
  datapoints_to_alarm = 2
  threshold           = 0
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
}

resource "aws_cloudwatch_metric_alarm" "work_throttled" {
  alarm_name          = "${var.name}-WorkThrottled"
  alarm_description   = "Millrace: the table of tasks and streams turns writes away; they are repeated, and requests get slow or a 503."
  namespace           = "AWS/DynamoDB"
  metric_name         = "WriteThrottleEvents"
  dimensions          = { TableName = aws_dynamodb_table.table["work"].name }
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 5
  datapoints_to_alarm = 2
  threshold           = 0
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
}
