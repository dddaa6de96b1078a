# What some functions may do besides, where it is asked for.

locals {
  with_objects = length(var.file_object_arns) > 0 ? 1 : 0
  with_targets = length(var.target_function_arns) > 0 ? 1 : 0
}

resource "aws_iam_role_policy" "sweep_objects" { # the right to remove or move objects at the ends of their orders
  count = local.with_objects

  name = "objects"
  role = module.sweep.role
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect = "Allow"
        Action = [
          "s3:GetObject",        # whether it is there still, and what is copied
          "s3:GetObjectTagging", # a copy has the same tags
          "s3:PutObject",
          "s3:PutObjectTagging",
          "s3:DeleteObject",
        ]
        Resource = var.file_object_arns
      },
      {
        Effect   = "Allow"
        Action   = ["s3:ListBucket"] # without it, S3 does not tell that an object has gone
        Resource = var.file_bucket_arns
      },
    ]
  })
}

resource "aws_iam_role_policy" "tasks_objects" { # the right to see whether an object is there that is to start an order
  count = local.with_objects

  name = "objects"
  role = module.tasks.role
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      { Effect = "Allow", Action = ["s3:GetObject"], Resource = var.file_object_arns },
      { Effect = "Allow", Action = ["s3:ListBucket"], Resource = var.file_bucket_arns },
    ]
  })
}

resource "aws_iam_role_policy" "worker_targets" { # the right to invoke the functions that tasks may be handed to
  count = local.with_targets

  name = "targets"
  role = module.worker.role
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Action = ["lambda:InvokeFunction"], Resource = var.target_function_arns }]
  })
}
