resource "aws_cloudwatch_metric_alarm" "errors" {
  alarm_name          = "${var.common.prefix}-${local.title}Errors"
  alarm_description   = "Millrace ${local.title}: invocations that failed; its log group says why."
  namespace           = "AWS/Lambda"
  metric_name         = "Errors"
  dimensions          = { FunctionName = aws_lambda_function.function.function_name }
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 5
  datapoints_to_alarm = 2
  threshold           = 0
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.common.alarm_actions
}

resource "aws_cloudwatch_metric_alarm" "throttles" {
  alarm_name          = "${var.common.prefix}-${local.title}Throttles"
  alarm_description   = "Millrace ${local.title}: invocations turned away; its log group says why."
  namespace           = "AWS/Lambda"
  metric_name         = "Throttles"
  dimensions          = { FunctionName = aws_lambda_function.function.function_name }
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 5
  datapoints_to_alarm = 2
  threshold           = 0
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.common.alarm_actions
}
