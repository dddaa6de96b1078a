package awsenv_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/awsenv"
)

const secretARN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:millrace-AbCdEf"

// TestSecret reads a secret of more than 4 KiB from a server that looks at the request as Secrets Manager does.
func TestSecret(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		signed := r.Header.Get("Authorization")
		if r.Method != http.MethodPost || r.Header.Get("X-Amz-Target") != "secretsmanager.GetSecretValue" ||
			!strings.Contains(signed, "/eu-central-1/secretsmanager/aws4_request") || !strings.Contains(signed, "x-amz-target") ||
			string(body) != `{"SecretId":"`+secretARN+`"}` || r.Header.Get("X-Amz-Security-Token") != "token" {
			t.Errorf("%s %s %v", r.Method, body, r.Header)
		}
		io.WriteString(w, `{"SecretString":"`+long+`"}`)
	}))
	defer server.Close()
	variables(t, map[string]string{"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "s",
		"AWS_SESSION_TOKEN": "token", "AWS_ENDPOINT_URL_SECRETS_MANAGER": server.URL})
	secret, err := awsenv.OpenSecret(t.Context(), secretARN)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := secret.Read(t.Context()); err != nil || string(got) != long {
		t.Errorf("%d bytes, %v, want the secret", len(got), err)
	}
}

func TestSecretRefused(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"__type":"AccessDeniedException","Message":"not allowed"}`)
	}))
	defer server.Close()
	variables(t, map[string]string{"AWS_REGION": "r", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "s", "AWS_ENDPOINT_URL": server.URL})
	secret, err := awsenv.OpenSecret(t.Context(), secretARN)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := secret.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "AccessDeniedException not allowed") {
		t.Errorf("%v, want what the service said", err)
	}
	if _, err := awsenv.OpenSecret(t.Context(), "millrace"); err == nil || !strings.Contains(err.Error(), "ARN of a secret") {
		t.Errorf("%v, want that it is no ARN", err)
	}
}
