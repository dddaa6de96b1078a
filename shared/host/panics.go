package host

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
)

// serveWhole runs the handler on a recorder. A panic becomes a 500 in place of whatever was recorded: nothing of it has left
// yet. Plain hosts need no such wall, net/http has one.
func serveWhole(handler http.Handler, w *recorder, r *http.Request, log *slog.Logger) {
	defer func() {
		if cause := recover(); cause != nil {
			if err, is := cause.(error); !is || !errors.Is(err, http.ErrAbortHandler) { // whoever threw that one has logged why
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
