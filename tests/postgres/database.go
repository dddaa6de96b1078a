package postgres

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

// shared is the instance of this test process.
var shared struct {
	sync.Mutex
	owned    bool // Run will end it
	instance *Instance
	err      error
}

var databases atomic.Int64

// Run runs the tests, usually a *testing.M, and ends the instance that they started, if any. It returns the exit code.
func Run(m interface{ Run() int }) int {
	shared.Lock()
	shared.owned = true
	shared.Unlock()
	defer func() {
		if shared.instance != nil {
			shared.instance.remove()
		}
	}()
	return m.Run()
}

// Database returns the URL of a new database, which no other test uses. See [Require] for what happens where there is no PostgreSQL.
func Database(t testing.TB) (url string) {
	t.Helper()
	programs := Require(t)
	shared.Lock()
	defer shared.Unlock()
	if !shared.owned {
		t.Fatal("postgres: TestMain must call postgres.Run, which ends the instance")
	}
	if shared.instance == nil && shared.err == nil {
		shared.instance, shared.err = create(programs)
	}
	if shared.err != nil {
		t.Fatalf("postgres: %v", shared.err)
	}
	name := fmt.Sprintf("test%d", databases.Add(1))
	if err := shared.instance.Execute("CREATE DATABASE " + name); err != nil {
		t.Fatalf("postgres: %v", err)
	}
	return shared.instance.URL(name)
}

// Own returns an instance that only this test uses, and may break. It is removed when the test ends.
func Own(t testing.TB) *Instance {
	t.Helper()
	i, err := create(Require(t))
	if err != nil {
		t.Fatalf("postgres: %v", err)
	}
	t.Cleanup(i.remove)
	return i
}

// Execute runs a statement in the instance's first database.
func (i *Instance) Execute(statement string) error {
	ctx := context.Background()
	c, err := pgx.Connect(ctx, i.URL("postgres"))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, statement)
	return err
}

// DropConnections ends all connections of clients, as an administrator or a failing network would.
func (i *Instance) DropConnections() error {
	return i.Execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'")
}

// DemandPasswords has the instance ask all users but its own for their passwords, from the next connection on.
func (i *Instance) DemandPasswords() error {
	return i.Execute(`DO $$ BEGIN
		EXECUTE format('COPY (VALUES (''local all millrace trust''), (''local all all scram-sha-256'')) TO %L', current_setting('hba_file'));
		PERFORM pg_reload_conf();
	END $$`)
}

func (i *Instance) remove() {
	i.Crash()
	os.RemoveAll(i.dir)
}
