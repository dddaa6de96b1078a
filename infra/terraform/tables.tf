# The three tables hold everything. Nothing here destroys them: see README.md for how to remove the rest, and how to take them up again.

resource "aws_dynamodb_table" "table" {
  for_each = toset([
    "journal",     # slots, sequencers and snapshot generations
    "work",        # tasks, streams and their index entries
    "definitions", # what operators declare
  ])

  name         = "${var.table_prefix}-${each.key}"
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "pk"
  range_key    = "sk"

  deletion_protection_enabled = var.deletion_protection

  attribute {
    name = "pk"
    type = "S"
  }
  attribute {
    name = "sk"
    type = "S"
  }
  ttl {
    attribute_name = "x"
    enabled        = true
  }
  point_in_time_recovery {
    enabled = true
  }
  server_side_encryption {
    enabled = true
  }
  lifecycle {
    prevent_destroy = true
  }
}
