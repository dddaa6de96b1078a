package awsenv

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// maxSecret is how many bytes of a response are read; a secret has 64 KiB at most, escaped some more.
const maxSecret = 1 << 20

// Secret is one of AWS Secrets Manager's. It is read by the one request that this takes, since the SDK's client for it would add a
// megabyte to each function.
type Secret struct {
	arn, region, endpoint string
	credentials           aws.CredentialsProvider
	client                aws.HTTPClient
}

// OpenSecret returns the secret with that ARN. Nothing is read yet.
func OpenSecret(ctx context.Context, arn string) (*Secret, error) {
	parts := strings.SplitN(arn, ":", 7) // arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME
	if len(parts) != 7 || parts[0] != "arn" || parts[2] != "secretsmanager" || parts[3] == "" {
		return nil, fmt.Errorf("awsenv: %q is not the ARN of a secret, such as arn:aws:secretsmanager:eu-central-1:123456789012:secret:millrace-AbCdEf", arn)
	}
	cfg, err := Load(ctx)
	if err != nil {
		return nil, err
	}
	s := &Secret{arn: arn, region: parts[3], credentials: cfg.Credentials, client: Client(Transport(2*time.Second, 1))}
	s.endpoint = "https://secretsmanager." + s.region + ".amazonaws.com"
	if parts[1] == "aws-cn" {
		s.endpoint += ".cn"
	}
	if cfg.BaseEndpoint != nil {
		s.endpoint = *cfg.BaseEndpoint
	}
	if own, found, _ := (endpoints{}).GetServiceBaseEndpoint(ctx, "Secrets Manager"); found && !ignoreEndpoints() {
		s.endpoint = own
	}
	return s, nil
}

// Read returns the secret's text as it is now.
func (s *Secret) Read(ctx context.Context) ([]byte, error) {
	body, err := json.Marshal(map[string]string{"SecretId": s.arn})
	if err != nil {
		return nil, err
	}
	request, err := s.request(ctx, body)
	if err != nil {
		return nil, fmt.Errorf("awsenv: read %s: %w", s.arn, err)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("awsenv: read %s: %w", s.arn, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxSecret))
	if err != nil {
		return nil, fmt.Errorf("awsenv: read %s: %w", s.arn, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, s.refused(response.StatusCode, text)
	}
	var answer struct{ SecretString string }
	if err := json.Unmarshal(text, &answer); err != nil || answer.SecretString == "" {
		return nil, fmt.Errorf("awsenv: %s holds no text", s.arn)
	}
	return []byte(answer.SecretString), nil
}

// request returns the signed request for the secret.
func (s *Secret) request(ctx context.Context, body []byte) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(s.endpoint, "/")+"/", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.1")
	request.Header.Set("X-Amz-Target", "secretsmanager.GetSecretValue")
	credentials, err := s.credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	return request, v4.NewSigner().SignHTTP(ctx, credentials, request, hex.EncodeToString(sum[:]), "secretsmanager", s.region, time.Now())
}

// refused returns the error of a response with such a status. It quotes what the service says, which holds nothing of the secret.
func (s *Secret) refused(status int, text []byte) error {
	var said struct {
		Type    string `json:"__type"`
		Message string `json:"message"` // or Message, as the error is
	}
	_ = json.Unmarshal(text, &said) // another text says nothing
	return fmt.Errorf("awsenv: read %s: status %d %s %s", s.arn, status, said.Type, said.Message)
}
