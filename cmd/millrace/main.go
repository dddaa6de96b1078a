package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	status := run(ctx, os.Args[1:], console{in: os.Stdin, out: os.Stdout, err: os.Stderr})
	stop()
	os.Exit(status)
}

// commands are the program's commands.
type commands struct {
	Serve    serveCommand    `cmd:"" help:"Run the server, everything in one process."`
	Dev      devCommand      `cmd:"" help:"Run a server to try things out; prints a token and an address."`
	Emit     emitCommand     `cmd:"" help:"Append events: one from arguments, many from a file or standard input."`
	Follow   followCommand   `cmd:"" help:"Print events as they come; goes on by itself after a restart."`
	Snapshot snapshotCommand `cmd:"" help:"Print the state that the events add up to."`
	Apply    applyCommand    `cmd:"" help:"Put a file of definitions in force: sources, handlers, jobs, queues, schedules, job chains."`
	Task     taskCommand     `cmd:"" help:"Enqueue tasks, look at them, follow their logs, cancel and retry them."`
	Worker   workerCommand   `cmd:"" help:"Run a command for each task of some jobs, on any machine."`
	Instance instanceCommand `cmd:"" help:"List the processes that run tasks; drain them."`
	Job      jobCommand      `cmd:"" help:"Add jobs to topics, list and search them, stop, remove and retry them."`
	Order    orderCommand    `cmd:"" help:"Add orders to job chains, list them, suspend, resume, move and repair them."`
	Act      actCommand      `cmd:"" help:"Look after acts on many orders or jobs: show, stop and resume them."`
	Queue    queueCommand    `cmd:"" help:"Show queues; suspend, resume and purge them, watch them at work."`
	DLQ      dlqCommand      `cmd:"" name:"dlq" help:"Look after jobs that have failed for good: list, show and replay them."`
	Rule     ruleCommand     `cmd:"" help:"Hold the events of handlers: pause or block them."`
	Schedule scheduleCommand `cmd:"" help:"Show schedules; suspend, resume, trigger and backfill them."`
	Chain    chainCommand    `cmd:"" help:"Show job chains, also as graphs; stop and start them, and their nodes."`
	Cron     cronCommand     `cmd:"" help:"Try out cron expressions."`
	Stream   streamCommand   `cmd:"" help:"Append to streams, read and acknowledge them, follow and list them."`
	Consumer consumerCommand `cmd:"" help:"Show how far the consumers of streams are."`
	MCP      mcpCommand      `cmd:"" name:"mcp" help:"Let an assistant see and act, by the Model Context Protocol."`
	Tables   tablesCommand   `cmd:"" help:"Create the tables of a store in PostgreSQL, on DynamoDB Local or LocalStack."`
	Check    checkCommand    `cmd:"" help:"Examine a server and its journal, or the data of a stopped server."`
	Copy     copyCommand     `cmd:"" help:"Copy everything of a stopped server to another, empty store."`
	Dump     dumpCommand     `cmd:"" help:"Print what the data of a stopped server holds of a task, or of a partition, as JSON."`
	Secret   secretCommand   `cmd:"" help:"Print what HTTP targets verify tasks by, as a server has made it."`
	Bench    benchCommand    `cmd:"" help:"Measure the journal, tasks, streams and workers."`
	Version  versionCommand  `cmd:"" help:"Print the version, and the commit that it was built from."`
}

const description = `A journal of events and a scheduler of tasks: whatever happens is an event, whatever must be done is a task.

Begin with "millrace dev". The clients find their server by MILLRACE_URL and show it MILLRACE_TOKEN.
Exit status: 0 ok, 1 failed, 2 usage, 3 not found, 4 conflict, 5 not allowed.`

// console is the input and the outputs of a command.
type console struct {
	in       io.Reader
	out, err io.Writer
}

// note prints a line for people, apart from the output.
func (c console) note(format string, args ...any) {
	fmt.Fprintf(c.err, "millrace: "+format+"\n", args...)
}

// exited is the panic with which kong, after --help, ends a command instead of the process.
type exited int

// run does what the arguments say and returns the exit status. It ends when ctx does.
func run(ctx context.Context, args []string, c console) (status int) {
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case exited:
			status = int(reason)
		default:
			panic(reason)
		}
	}()
	if len(args) > 0 && args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	parser, err := kong.New(new(commands),
		kong.Name("millrace"), kong.Description(description), kong.Writers(c.out, c.err),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, WrapUpperBound: 100}),
		kong.WithHyphenPrefixedParameters(true), // for --limit -3
		kong.TypeMapper(reflect.TypeFor[time.Time](), kong.MapperFunc(readTime)),
		kong.Exit(func(code int) { panic(exited(code)) }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(c),
	)
	if err != nil {
		panic(err) // the commands above are wrong
	}
	parsed, err := parser.Parse(args)
	if err == nil {
		err = parsed.Run()
	}
	if err == nil {
		return statusOK
	}
	c.note("%s", explain(err))
	var misuse *kong.ParseError
	if errors.As(err, &misuse) && misuse.Context != nil {
		c.note(`see "%s --help"`, misuse.Context.Model.Name)
	}
	return statusOf(err)
}

// readTime reads an argument that is a time. Its error shows one, which that of package time does not.
func readTime(d *kong.DecodeContext, into reflect.Value) error {
	var text string
	if err := d.Scan.PopValueInto("time", &text); err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return fmt.Errorf("%q is no time: want one such as 2026-01-31T12:00:00Z", text)
	}
	into.Set(reflect.ValueOf(at))
	return nil
}
