variable "name" {
  description = "Folder of the function below functions/."
  type        = string
}

variable "common" {
  description = "What all functions share."
  type = object({
    prefix             = string
    build              = string
    architecture       = string
    log_retention_days = number
    tracing            = string
    alarm_actions      = list(string)
    api                = string
    api_execution_arn  = string
    secrets            = string
  })
}

variable "environment" {
  description = "Environment variables."
  type        = map(string)
}

variable "timeout" {
  description = "Seconds that an invocation may take."
  type        = number
  default     = 29 # API Gateway gives up after 29 s; requests wait for events 25 s at most
}

variable "memory" {
  description = "MB that the function has, and with them its part of a processor."
  type        = number
  default     = 512 # for the processor, see docs/costs.md
}

variable "loop" {
  description = "Whether Lambda lets the function invoke itself by way of a queue again and again: Allow or Terminate."
  type        = string
  default     = "Terminate"
}

variable "repeated" {
  description = "How often Lambda repeats an asynchronous invocation that failed; null: as Lambda does."
  type        = number
  default     = null
}

variable "policy" {
  description = "What the function may do."
  type        = list(object({ resources = list(string), actions = list(string) }))
}

variable "routes" {
  description = "Routes of the API that lead to the function."
  type        = list(string)
  default     = []
}
