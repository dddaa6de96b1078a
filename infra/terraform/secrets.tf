# Tokens and the signing secret. What is put here by hand holds a minute later, and until an apply has other variables.

resource "aws_secretsmanager_secret" "secrets" {
  name_prefix = "${var.name}-" # one that was deleted keeps its name for a while
  description = "Millrace, ${var.table_prefix}: tokens and signing_secret as JSON; read again each minute"
}

resource "aws_secretsmanager_secret_version" "secrets" {
  secret_id = aws_secretsmanager_secret.secrets.id
  secret_string = (
    var.tokens != ""
    ? "{\"tokens\":${var.tokens},\"signing_secret\":\"${var.signing_secret}\"}"
    : "{\"tokens\":[{\"name\":\"admin\",\"role\":\"admin\",\"sha256\":\"${var.admin_token_sha256}\"}],\"signing_secret\":\"${var.signing_secret}\"}"
  )
}
