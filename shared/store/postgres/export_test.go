package postgres

// VacuumOnce vacuums the items if least of their rows are dead.
var VacuumOnce = (*Store).vacuumOnce
