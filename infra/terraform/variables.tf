# The parameters of template.yaml, with the same checks; admin_token_sha256 is its AdminTokenSha256. The last two are Terraform's alone.

variable "admin_token_sha256" {
  description = "SHA-256 of the admin token's secret, 64 hexadecimal digits, as from: printf %s SECRET | sha256sum. The secret itself stays with you."
  type        = string
  sensitive   = true
  validation {
    condition     = can(regex("^[0-9a-f]{64}$", var.admin_token_sha256))
    error_message = "Want 64 lower-case hexadecimal digits."
  }
}

variable "tokens" {
  description = "Optional: a list of all tokens in place of the one above, as JSON, such as [{\"name\":\"ci\",\"role\":\"producer\",\"sha256\":\"...\"}]."
  type        = string
  sensitive   = true
  default     = ""
  validation {
    condition     = can(regex("^(|\\[ *\\{ *\".+\\} *\\])$", var.tokens))
    error_message = "Want a list of tokens as JSON, with its quotes: [{\"name\":\"ci\",\"role\":\"producer\",\"sha256\":\"...\"}]."
  }
}

variable "dashboard_mask" {
  description = "Optional: names of fields, separated by commas, whose values no page shows, such as password,iban."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(|[A-Za-z_][A-Za-z0-9_-]*(, ?[A-Za-z_][A-Za-z0-9_-]*)*)$", var.dashboard_mask))
    error_message = "Want names of fields, separated by commas."
  }
}

variable "cors_origins" {
  description = "Optional: origins, separated by commas, whose pages may use the API from browsers, such as https://app.example.com,http://localhost:3000."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(|https?://[a-z0-9.-]+(:[0-9]{1,5})?(, ?https?://[a-z0-9.-]+(:[0-9]{1,5})?)*)$", var.cors_origins))
    error_message = "Want origins such as https://app.example.com, separated by commas."
  }
}

variable "table_prefix" {
  description = "Tables are named PREFIX-journal, PREFIX-work and PREFIX-definitions. They are not destroyed with the rest."
  type        = string
  default     = "millrace"
  validation {
    condition     = can(regex("^[a-zA-Z0-9_.-]{1,200}$", var.table_prefix))
    error_message = "Want 1 to 200 letters, digits, and _ . -"
  }
}

variable "deletion_protection" {
  description = "Whether DynamoDB refuses to delete the tables, by whomever."
  type        = bool
  default     = false
}

variable "retention_events" {
  description = "The journal keeps so many of the newest events..."
  type        = number
  default     = 1000000
  validation {
    condition     = var.retention_events >= 1
    error_message = "Want a number of 1 or more."
  }
}

variable "retention_age" {
  description = "...and none older than this, such as 7d or 36h."
  type        = string
  default     = "7d"
  validation {
    condition     = can(regex("^([0-9.]+(ms|s|m|h|d))+$", var.retention_age))
    error_message = "Want a duration such as 7d or 36h."
  }
}

variable "worker_concurrency" {
  description = "How many workers may run at once; each runs up to ten tasks at a time."
  type        = number
  default     = 16
  validation {
    condition     = var.worker_concurrency >= 2 && var.worker_concurrency <= 1000
    error_message = "Want a number from 2 to 1000."
  }
}

variable "signing_secret" {
  description = "Optional: what tasks that are sent by HTTP are signed with, as from: echo whsec_$(openssl rand -base64 32). Without it one is made and kept in the table of definitions."
  type        = string
  sensitive   = true
  default     = ""
  validation {
    condition     = can(regex("^(|whsec_[A-Za-z0-9+/]{32,86}={0,2})$", var.signing_secret))
    error_message = "Want whsec_ and the base64 of 24 to 64 bytes."
  }
}

variable "target_function_arns" {
  description = "Optional: ARNs of the Lambda functions that tasks may be handed to."
  type        = list(string)
  default     = []
}

variable "file_object_arns" {
  description = "Optional: ARNs of the objects that file_orders remove or move, and of where they are moved to, such as arn:aws:s3:::parcels/in/* and arn:aws:s3:::parcels/done/*."
  type        = list(string)
  default     = []
}

variable "file_bucket_arns" {
  description = "With file_object_arns: ARNs of their buckets, such as arn:aws:s3:::parcels."
  type        = list(string)
  default     = []
}

variable "architecture" {
  description = "Processor of the functions, which must be the one they were built for: make build ARCH=arm64, or ARCH=amd64 for x86_64."
  type        = string
  default     = "arm64"
  validation {
    condition     = contains(["arm64", "x86_64"], var.architecture)
    error_message = "Want arm64 or x86_64."
  }
}

variable "history_age" {
  description = "How long finished tasks are kept, such as 90d; empty: until they are removed."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(|([0-9.]+(ms|s|m|h|d))+)$", var.history_age))
    error_message = "Want a duration such as 90d."
  }
}

variable "log_level" {
  description = "From which level on functions log."
  type        = string
  default     = "info"
  validation {
    condition     = contains(["debug", "info", "warn", "error"], var.log_level)
    error_message = "Want debug, info, warn or error."
  }
}

variable "log_retention_days" {
  description = "Days that logs are kept."
  type        = number
  default     = 30
  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1827, 3653], var.log_retention_days)
    error_message = "Want one of 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1827, 3653."
  }
}

variable "tracing" {
  description = "Whether invocations of the functions are traced by X-Ray, which costs by the trace."
  type        = string
  default     = "Disabled"
  validation {
    condition     = contains(["Disabled", "Active"], var.tracing)
    error_message = "Want Disabled or Active."
  }
}

variable "alarm_topic_arn" {
  description = "Optional: ARN of an SNS topic that alarms are sent to."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(|arn:aws[a-z-]*:sns:.+)$", var.alarm_topic_arn))
    error_message = "Want the ARN of an SNS topic."
  }
}

variable "domain_name" {
  description = "Optional: the name at which the API and the pages are, such as millrace.example.com; with certificate_arn."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(|([a-z0-9]([a-z0-9-]*[a-z0-9])?\\.)+[a-z]{2,})$", var.domain_name))
    error_message = "Want a name such as millrace.example.com, in lower case."
  }
}

variable "certificate_arn" {
  description = "With domain_name: ARN of its certificate in AWS Certificate Manager, of the same region."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(|arn:aws[a-z-]*:acm:[a-z0-9-]+:[0-9]{12}:certificate/.+)$", var.certificate_arn))
    error_message = "Want the ARN of a certificate in AWS Certificate Manager."
  }
}

variable "hosted_zone_id" {
  description = "Optional, with domain_name: id of the Route 53 zone in which a record is made for it. Without it, make one that leads to the output domain_target."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(|Z[A-Z0-9]+)$", var.hosted_zone_id))
    error_message = "Want the id of a hosted zone, such as Z0123456789ABCDEFGHIJ."
  }
}

variable "name" {
  description = "What the names of functions, roles, queues and alarms begin with; two deployments in one account have different ones, and different table prefixes."
  type        = string
  default     = "millrace"
  validation {
    condition     = can(regex("^[a-zA-Z0-9-]{1,40}$", var.name))
    error_message = "Want 1 to 40 letters, digits and hyphens."
  }
}

variable "build" {
  description = "Folder that make build has written, which holds functions/NAME/bootstrap and architecture; relative to where Terraform runs. Empty: that of this repository."
  type        = string
  default     = ""
}
