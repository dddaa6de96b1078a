output "secrets" {
  description = "ARN of the secret that holds the tokens and the signing secret."
  value       = aws_secretsmanager_secret.secrets.arn
}

output "url" {
  description = "Where the API is; the value for MILLRACE_URL."
  value       = var.domain_name == "" ? aws_apigatewayv2_api.api.api_endpoint : "https://${var.domain_name}"
}

output "domain_target" {
  description = "What the record of domain_name leads to; null without a domain_name."
  value       = var.domain_name == "" ? null : aws_apigatewayv2_domain_name.domain[0].domain_name_configuration[0].target_domain_name
}

output "journal_table" {
  description = "Table of slots, sequencers and snapshot generations."
  value       = aws_dynamodb_table.table["journal"].name
}

output "work_table" {
  description = "Table of tasks and streams."
  value       = aws_dynamodb_table.table["work"].name
}

output "notices" {
  description = "URL of the queue that wakes workers."
  value       = aws_sqs_queue.notices.url
}

output "definitions_table" {
  description = "Table of what operators declare."
  value       = aws_dynamodb_table.table["definitions"].name
}
