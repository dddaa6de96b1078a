# What is invoked each minute.

locals {
  ticks = { sweep = module.sweep.arn, cron = module.cron.arn }
}

resource "aws_scheduler_schedule" "minute" {
  for_each = local.ticks

  name                = "${var.name}-${each.key}"
  schedule_expression = "rate(1 minute)"

  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = each.value
    role_arn = aws_iam_role.minute[each.key].arn
    input    = "{\"tick\":\"${each.key}\",\"time\":\"<aws.scheduler.scheduled-time>\"}"

    retry_policy {
      maximum_retry_attempts = 0
    }
  }
}

resource "aws_iam_role" "minute" {
  for_each = local.ticks

  name = "${var.name}-${each.key}-schedule"
  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Principal = { Service = "scheduler.amazonaws.com" }, Action = "sts:AssumeRole" }]
  })
}

resource "aws_iam_role_policy" "minute" {
  for_each = local.ticks

  name = "invoke"
  role = aws_iam_role.minute[each.key].name
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Action = ["lambda:InvokeFunction"], Resource = each.value }]
  })
}
