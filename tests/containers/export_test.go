package containers

// LeaveOut is what Require does about the lack of a Docker engine.
var LeaveOut = leaveOut
