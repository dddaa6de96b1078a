package definition

// Diff returns the changes from the set before to the set after.
func Diff(before, after *Set) Changes { return diff(before.objects(), after.objects()) }
