package host

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
)

// serveWhole runs the handler on a recorder. A panic replaces what was recorded by a 500, since nothing has been sent yet.
// Plain hosts do not need this: net/http recovers itself.
func serveWhole(handler http.Handler, w *recorder, r *http.Request, log *slog.Logger) {
	defer func() {
		if cause := recover(); cause != nil {
			if err, is := cause.(error); !is || !errors.Is(err, http.ErrAbortHandler) { // which is logged where it is thrown
				logPanic(log, cause)
			}
			w.reset()
			problem(w, http.StatusInternalServerError, "internal", "the request failed unexpectedly")
		}
	}()
	handler.ServeHTTP(w, r)
}

func logPanic(log *slog.Logger, cause any) {
	log.Error("panic", "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
}
