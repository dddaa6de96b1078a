package host

import (
	"encoding/json"
	"net/http"
)

// problem writes an RFC 9457 response in the same form as the API's.
func problem(w http.ResponseWriter, status int, code, detail string) {
	body, err := json.Marshal(map[string]any{
		"type": "about:blank", "title": http.StatusText(status), "status": status,
		"detail": detail, "message": detail, "code": code,
	})
	if err != nil {
		panic(err) // strings and a number always marshal
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have gone
}
