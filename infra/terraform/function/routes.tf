resource "aws_apigatewayv2_integration" "function" {
  count = length(var.routes) > 0 ? 1 : 0

  api_id                 = var.common.api
  integration_type       = "AWS_PROXY"
  integration_uri        = aws_lambda_function.function.arn
  payload_format_version = "2.0"
}

resource "aws_apigatewayv2_route" "function" {
  for_each = toset(var.routes)

  api_id    = var.common.api
  route_key = each.key
  target    = "integrations/${aws_apigatewayv2_integration.function[0].id}"
}

resource "aws_lambda_permission" "api" { # the right of the API, with all its routes, to invoke the function
  count = length(var.routes) > 0 ? 1 : 0

  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.function.function_name
  principal     = "apigateway.amazonaws.com"
  source_arn    = "${var.common.api_execution_arn}/*"
}
