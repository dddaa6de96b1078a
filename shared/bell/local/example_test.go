package local_test

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/shared/bell"
	"github.com/millrace/millrace/shared/bell/local"
)

func Example() {
	ctx := context.Background()
	line := local.New()
	defer line.Close()

	// A process that makes tasks ready:
	if err := line.Ring(ctx, bell.Ring{Queue: "mail"}, bell.Ring{Queue: "mail"}, bell.Ring{Queue: "reports"}); err != nil {
		fmt.Println(err)
	}

	// A process with free workers for ten tasks:
	rings, err := line.Receive(ctx, 10)
	if err != nil {
		fmt.Println(err)
	}
	for _, ring := range rings {
		fmt.Println("look for a task in", ring.Queue)
	}
	// Output:
	// look for a task in mail
	// look for a task in reports
	// look for a task in mail
}
