// Package infra compares infra/terraform with template.yaml: both are evaluated with the same parameters, and each function, route,
// permission, variable, schedule, queue, table, alarm and output of the one must be there in the other, property by property.
//
// It also compares infra/knative with the template, and renders infra/helm; both are decoded strictly into the types of Kubernetes, those of
// Knative and of the Gateway API into types of its own with the fields that are used. The two files of infra for Compose are compared with each other.
//
// The files are read as OpenTofu and Terraform read them, but without the provider of AWS, which says what attributes there are. It is a
// module of its own, since the product needs no reader of such files.
package infra
