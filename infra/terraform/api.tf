# The API; its routes are with the functions they lead to.

resource "aws_apigatewayv2_api" "api" {
  name          = var.name
  protocol_type = "HTTP"

  lifecycle {
    precondition {
      condition     = (var.domain_name == "") == (var.certificate_arn == "")
      error_message = "domain_name and certificate_arn go together."
    }
    precondition {
      condition     = var.domain_name != "" || var.hosted_zone_id == ""
      error_message = "hosted_zone_id goes with domain_name."
    }
  }
}

resource "aws_apigatewayv2_stage" "default" {
  api_id      = aws_apigatewayv2_api.api.id
  name        = "$default"
  auto_deploy = true

  default_route_settings {
    throttling_burst_limit = 1000
    throttling_rate_limit  = 2000
  }
  access_log_settings { # no path and no query: those may hold names and tokens
    destination_arn = aws_cloudwatch_log_group.api.arn
    format          = "{\"requestId\":\"$context.requestId\",\"route\":\"$context.routeKey\",\"status\":$context.status,\"bytes\":$context.responseLength,\"milliseconds\":$context.responseLatency,\"error\":\"$context.integrationErrorMessage\"}"
  }
}

resource "aws_cloudwatch_log_group" "api" {
  name              = "/millrace/${var.name}/api"
  retention_in_days = var.log_retention_days
}
