package layout

// QueueLimit returns the name of the limit of a queue, see [limit.Limits].
func QueueLimit(name string) string { return "queue/" + name }

// KeyLimit returns the name of the limit of a concurrency key.
func KeyLimit(key string) string { return "key/" + key }

// InstanceLimit returns the name of the limit of an instance.
func InstanceLimit(instance string) string { return "at/" + instance }
