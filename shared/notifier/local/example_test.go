package local_test

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/notifier/local"
)

func Example() {
	ctx := context.Background()
	line := local.New()
	defer line.Close()

	// A process that makes tasks ready:
	if err := line.Notify(ctx, notifier.Notice{Queue: "mail"}, notifier.Notice{Queue: "mail"}, notifier.Notice{Queue: "reports"}); err != nil {
		fmt.Println(err)
	}

	// A process with free workers for ten tasks:
	notices, err := line.Receive(ctx, 10)
	if err != nil {
		fmt.Println(err)
	}
	for _, notice := range notices {
		fmt.Println("look for a task in", notice.Queue)
	}
	// Output:
	// look for a task in mail
	// look for a task in reports
	// look for a task in mail
}
