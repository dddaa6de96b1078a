package web

// readSoon reads the schedules that fire soonest. Those that are suspended, or fire never again, come last.
func readSoon(r *reading) { r.get("schedules", "/api/v1/schedules?order=next&limit=10") }
