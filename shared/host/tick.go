package host

import (
	"context"
	"fmt"
	"time"
)

// tick runs the function's tick; a panic is returned as an error.
func (f Function) tick(ctx context.Context, name string, at time.Time) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			logPanic(f.log(), cause)
			err = fmt.Errorf("host: %s panicked at its tick %q: %v", f.Name, name, cause)
		}
	}()
	if at.IsZero() {
		at = time.Now()
	}
	if err := f.Tick(ctx, Tick{Name: name, At: at.UTC()}); err != nil {
		return fmt.Errorf("host: tick %q: %w", name, err)
	}
	return nil
}
