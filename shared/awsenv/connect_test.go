package awsenv_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/millrace/millrace/shared/awsenv"
)

func TestConnectKeepsWhatIsGiven(t *testing.T) {
	t.Parallel()
	given := aws.Config{Region: "eu-central-1", HTTPClient: http.DefaultClient, Retryer: func() aws.Retryer { return aws.NopRetryer{} }}
	cfg, err := awsenv.Connect(t.Context(), &given, &http.Transport{}, awsenv.Retryer(3, nil))
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Region != given.Region || cfg.HTTPClient != given.HTTPClient || cfg.Retryer().MaxAttempts() != 1 {
		t.Errorf("Connect = %+v, want what was given", cfg)
	}
}

func TestConnectAddsWhatIsMissing(t *testing.T) {
	t.Parallel()
	pauses := func(attempt int) time.Duration { return time.Duration(attempt) * time.Second }
	cfg, err := awsenv.Connect(t.Context(), &aws.Config{}, &http.Transport{}, awsenv.Retryer(3, pauses))
	if err != nil {
		t.Fatal(err)
	}
	if cfg.HTTPClient == nil {
		t.Error("Connect has made no HTTP client")
	}
	retryer := cfg.Retryer()
	pause, err := retryer.RetryDelay(1, nil)
	if retryer.MaxAttempts() != 3 || pause != 0 || err != nil {
		t.Errorf("%d attempts, and after the first a pause of %v, %v, want 3 and 0", retryer.MaxAttempts(), pause, err)
	}
}
