package awsenv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
)

// containerHost is the address of a container's credentials on Amazon ECS.
const containerHost = "http://169.254.170.2"

// Load returns the SDK's configuration from the standard variables, for every host that a function runs on:
//
//   - AWS_REGION, AWS_DEFAULT_REGION
//   - AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_DYNAMODB and its like, AWS_IGNORE_CONFIGURED_ENDPOINT_URLS
//   - AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN: Lambda, and anywhere by hand
//   - AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, …_FULL_URI, AWS_CONTAINER_AUTHORIZATION_TOKEN, …_TOKEN_FILE: ECS, App
//     Runner, Pod Identity on EKS
//   - otherwise the role of the EC2 instance (AWS_EC2_METADATA_DISABLED=true disables it)
//
// Variables that ask for another way of signing in (AWS_PROFILE, AWS_WEB_IDENTITY_TOKEN_FILE) are an error. The SDK's
// config module supports these ways; its configuration can be used in place of this one.
func Load(context.Context) (aws.Config, error) {
	cfg := aws.Config{
		Region:        first("AWS_REGION", "AWS_DEFAULT_REGION"),
		ConfigSources: []any{endpoints{}},
	}
	if cfg.Region == "" {
		return aws.Config{}, errors.New("awsenv: AWS_REGION is not set")
	}
	if endpoint := os.Getenv("AWS_ENDPOINT_URL"); endpoint != "" && !ignoreEndpoints() {
		cfg.BaseEndpoint = aws.String(endpoint)
	}
	provider, err := signIn()
	if err != nil {
		return aws.Config{}, err
	}
	cfg.Credentials = aws.NewCredentialsCache(provider)
	return cfg, nil
}

func first(names ...string) string {
	for _, name := range names {
		if value := os.Getenv(name); value != "" {
			return value
		}
	}
	return ""
}

// endpoints returns the configured endpoint of each service. The SDK looks for its interface in ConfigSources.
type endpoints struct{}

// GetServiceBaseEndpoint returns AWS_ENDPOINT_URL_SERVICE; SERVICE is the service's id in capitals with underscores for
// spaces.
func (endpoints) GetServiceBaseEndpoint(_ context.Context, service string) (string, bool, error) {
	value := os.Getenv("AWS_ENDPOINT_URL_" + strings.ReplaceAll(strings.ToUpper(service), " ", "_"))
	return value, value != "", nil
}

// GetIgnoreConfiguredEndpoints reports whether the endpoint variables are to be ignored.
func (endpoints) GetIgnoreConfiguredEndpoints(context.Context) (bool, bool, error) {
	return ignoreEndpoints(), true, nil
}

func ignoreEndpoints() bool {
	return strings.EqualFold(os.Getenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"), "true")
}

// signIn chooses the source of credentials, in the order of the SDK's own chain.
func signIn() (aws.CredentialsProvider, error) {
	if id, secret := os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"); id != "" && secret != "" {
		return credentials.NewStaticCredentialsProvider(id, secret, os.Getenv("AWS_SESSION_TOKEN")), nil
	}
	for _, name := range []string{"AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"} {
		if os.Getenv(name) != "" {
			return nil, fmt.Errorf("awsenv: %s is not supported here: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY "+
				"(aws configure export-credentials --format env prints them)", name)
		}
	}
	if path := os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); path != "" {
		return containerCredentials(containerHost + path), nil
	}
	if full := os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI"); full != "" {
		if err := trusted(full); err != nil {
			return nil, err
		}
		return containerCredentials(full), nil
	}
	return ec2rolecreds.New(), nil
}

func containerCredentials(endpoint string) aws.CredentialsProvider {
	return endpointcreds.New(endpoint, func(o *endpointcreds.Options) {
		o.AuthorizationToken = os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN")
		if file := os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" {
			o.AuthorizationTokenProvider = endpointcreds.TokenProviderFunc(func() (string, error) {
				token, err := os.ReadFile(file) // at each call, since the file is renewed
				return string(token), err
			})
		}
	})
}

// trusted returns an error if credentials would be fetched in the clear, except from this machine or from the addresses
// where ECS and EKS provide them.
func trusted(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil {
		return fmt.Errorf("awsenv: AWS_CONTAINER_CREDENTIALS_FULL_URI: %w", err)
	}
	ip := net.ParseIP(u.Hostname())
	switch {
	case u.Scheme == "https", u.Hostname() == "localhost", ip.IsLoopback():
		return nil
	case ip.Equal(net.IPv4(169, 254, 170, 2)), ip.Equal(net.IPv4(169, 254, 170, 23)), ip.Equal(net.ParseIP("fd00:ec2::23")):
		return nil
	default:
		return fmt.Errorf("awsenv: AWS_CONTAINER_CREDENTIALS_FULL_URI: credentials over http from %s are not safe", u.Host)
	}
}
