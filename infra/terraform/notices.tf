resource "aws_sqs_queue" "notices" { # notifications that wake workers; a message says only that it is worth looking for a task
  name                       = "${var.name}-notices"
  visibility_timeout_seconds = 5400 # six times the worker's own timeout; nothing waits for it, since the worker sends its notifications once more
  message_retention_seconds  = 86400
  sqs_managed_sse_enabled    = true
  redrive_policy             = jsonencode({ deadLetterTargetArn = aws_sqs_queue.dead_notices.arn, maxReceiveCount = 3 })
}

resource "aws_sqs_queue" "dead_notices" { # notifications that no worker could take; no task is lost with them
  name                      = "${var.name}-dead-notices"
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
}

resource "aws_lambda_event_source_mapping" "worker" {
  event_source_arn        = aws_sqs_queue.notices.arn
  function_name           = module.worker.arn
  batch_size              = 10
  function_response_types = ["ReportBatchItemFailures"]

  scaling_config {
    maximum_concurrency = var.worker_concurrency
  }
  depends_on = [aws_iam_role_policy_attachment.worker_notices]
}

resource "aws_iam_role_policy_attachment" "worker_notices" { # the right to take messages from a queue
  role       = module.worker.role
  policy_arn = "arn:${data.aws_partition.current.partition}:iam::aws:policy/service-role/AWSLambdaSQSQueueExecutionRole"
}

data "aws_partition" "current" {}
