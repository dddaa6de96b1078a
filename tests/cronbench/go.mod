module github.com/millrace/millrace/tests/cronbench

go 1.26.0

require (
	github.com/millrace/millrace v0.0.0
	github.com/reugn/go-quartz v0.15.2
	github.com/robfig/cron/v3 v3.0.1
)

replace github.com/millrace/millrace => ../..
