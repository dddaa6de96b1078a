package containers

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/millrace/millrace/tests/process"
)

// Bucket returns the name of a fresh bucket of S3.
func Bucket(t testing.TB) (name string) {
	t.Helper()
	name = Prefix()
	objectRequest(t, http.MethodPut, name, "", "")
	return name
}

// PutObject puts an object with that text in place of what is there.
func PutObject(t testing.TB, bucket, key, text string) {
	t.Helper()
	objectRequest(t, http.MethodPut, bucket, key, text)
}

// GetObject returns the text of an object; empty if there is none.
func GetObject(t testing.TB, bucket, key string) (text string) {
	t.Helper()
	return objectRequest(t, http.MethodGet, bucket, key, "")
}

// objectRequest sends a request to S3 of LocalStack, which checks no signature.
func objectRequest(t testing.TB, method, bucket, key, text string) string {
	t.Helper()
	at := LocalStack(t) + "/" + bucket + "/" + strings.ReplaceAll(url.PathEscape(key), "%2F", "/")
	r, err := http.NewRequestWithContext(context.Background(), method, at, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0")
	response, err := process.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case response.StatusCode == http.StatusNotFound && method == http.MethodGet:
		return ""
	case response.StatusCode/100 != 2:
		t.Fatalf("%s %s: %s %s", method, at, response.Status, body)
	}
	return string(body)
}
