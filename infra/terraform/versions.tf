terraform {
  required_version = ">= 1.9" # OpenTofu or Terraform

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 6.2"
    }
    archive = {
      source  = "hashicorp/archive"
      version = "~> 2.4"
    }
  }
}
