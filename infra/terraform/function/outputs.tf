output "name" {
  description = "The function's name in the account."
  value       = aws_lambda_function.function.function_name
}

output "arn" {
  description = "The function's ARN."
  value       = aws_lambda_function.function.arn
}

output "role" {
  description = "The name of the role that the function has."
  value       = aws_iam_role.function.name
}
