# A name of one's own, where domain_name gives one.

resource "aws_apigatewayv2_domain_name" "domain" {
  count       = var.domain_name == "" ? 0 : 1
  domain_name = var.domain_name

  domain_name_configuration {
    certificate_arn = var.certificate_arn
    endpoint_type   = "REGIONAL"
    security_policy = "TLS_1_2"
  }
}

resource "aws_apigatewayv2_api_mapping" "domain" {
  count       = var.domain_name == "" ? 0 : 1
  domain_name = aws_apigatewayv2_domain_name.domain[0].id
  api_id      = aws_apigatewayv2_api.api.id
  stage       = aws_apigatewayv2_stage.default.id
}

resource "aws_route53_record" "domain" {
  count   = var.domain_name == "" || var.hosted_zone_id == "" ? 0 : 1
  zone_id = var.hosted_zone_id
  name    = var.domain_name
  type    = "A"

  alias {
    name                   = aws_apigatewayv2_domain_name.domain[0].domain_name_configuration[0].target_domain_name
    zone_id                = aws_apigatewayv2_domain_name.domain[0].domain_name_configuration[0].hosted_zone_id
    evaluate_target_health = false
  }
}
