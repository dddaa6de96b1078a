package sam

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// Stack is the template, built for this machine, with its functions' requests to AWS going to an endpoint.
type Stack struct {
	root       string            // of the project
	files      string            // the built template and the variables
	parameters []string          // of the template
	vars       map[string]string // in place of the template's own, for variables that it declares
}

// Config is what [Build] needs to know. Every field must be set but Vars, Granted, Functions and Lambda.
type Config struct {
	Root     string            // of the project
	Dir      string            // where to put what is built
	Endpoint string            // of LocalStack, as containers reach it; of functions that Granted does not name
	Admin    string            // SHA-256 of the admin token
	Vars     map[string]string // environment variables in place of the template's

	Granted   map[string]string // endpoints of functions by their logical ids, where each may do only what the template grants it
	Functions map[string]string // further functions of Go by their logical ids: packages
	Lambda    string            // where functions invoke others, as containers reach it; default: Endpoint
}

// Build runs sam build.
func Build(ctx context.Context, c Config) (*Stack, error) {
	s := &Stack{root: c.Root, files: c.Dir, vars: map[string]string{
		"MILLRACE_SECRETS": "", // there is no Secrets Manager
		"MILLRACE_TOKENS":  `[{"name":"admin","role":"admin","sha256":"` + c.Admin + `"}]`,
	}}
	maps.Copy(s.vars, c.Vars)
	s.parameters = []string{"--parameter-overrides", "Architecture=" + architecture(), "AdminTokenSha256=" + c.Admin}
	if _, err := s.sam(ctx, append([]string{"build", "--build-dir", s.files}, s.parameters...)...); err != nil {
		return nil, err
	}
	if err := s.redirect(c); err != nil {
		return nil, err
	}
	for id, source := range c.Functions {
		if err := s.add(ctx, id, source); err != nil {
			return nil, err
		}
	}
	all := map[string]map[string]string{"Parameters": s.vars}
	for id, endpoint := range c.Granted {
		all[id] = map[string]string{"AWS_ENDPOINT_URL": endpoint}
	}
	vars, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	return s, os.WriteFile(s.file("vars.json"), vars, 0o600)
}

// architecture is the machine's own, as the template names it.
func architecture() string {
	if runtime.GOARCH == "arm64" {
		return "arm64"
	}
	return "x86_64"
}

func (s *Stack) file(name string) string { return filepath.Join(s.files, name) }

var storeVariable = regexp.MustCompile(`(?m)^( *)MILLRACE_STORE:`)

// redirect gives the functions variables that the template does not declare: SAM passes no others.
func (s *Stack) redirect(c Config) error {
	template, err := os.ReadFile(s.file("template.yaml"))
	if err != nil {
		return err
	}
	if !storeVariable.Match(template) {
		return errors.New("sam: the built template has no MILLRACE_STORE")
	}
	variables := "${1}AWS_ENDPOINT_URL: " + c.Endpoint + "\n${1}MILLRACE_TOKENS: x\n"
	if c.Lambda != "" {
		variables += "${1}AWS_ENDPOINT_URL_LAMBDA: " + c.Lambda + "\n"
	}
	template = storeVariable.ReplaceAll(template, []byte(variables+"${0}"))
	return os.WriteFile(s.file("template.yaml"), template, 0o600)
}

var resources = regexp.MustCompile(`(?m)^Resources:\n`)

// add builds a function that the project's template does not have, and adds it to the built one.
func (s *Stack) add(ctx context.Context, id, source string) error {
	build := exec.CommandContext(ctx, "go", "build", "-tags", "lambda.norpc", "-o", filepath.Join(s.file(id), "bootstrap"), source)
	build.Dir = s.root
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", source, err, out)
	}
	template, err := os.ReadFile(s.file("template.yaml"))
	if err != nil {
		return err
	}
	if !resources.Match(template) {
		return errors.New("sam: the built template has no Resources")
	}
	template = resources.ReplaceAll(template, fmt.Appendf(nil, `Resources:
  %s:
    Type: AWS::Serverless::Function
    Properties: {CodeUri: %[1]s, Handler: bootstrap, Runtime: provided.al2023, Architectures: [%s]}
`, id, architecture()))
	return os.WriteFile(s.file("template.yaml"), template, 0o600)
}

// Invoke runs sam local invoke for the function of that folder. It returns the function's response, or the text of the
// error with which it ended.
func (s *Stack) Invoke(ctx context.Context, function, payload string) (answer []byte, failure string, err error) {
	out, err := s.sam(ctx, append([]string{"local", "invoke", LogicalID(function), "--event", payload}, s.common()...)...)
	if err != nil {
		return nil, "", err
	}
	answer, failure = outcome(out)
	return answer, failure, nil
}

// outcome tells a response from the text of an error.
func outcome(out []byte) (answer []byte, failure string) {
	out = bytes.TrimSpace(out)
	var failed struct {
		Message string `json:"errorMessage"`
	}
	if json.Unmarshal(out, &failed) == nil && failed.Message != "" {
		return nil, failed.Message
	}
	return out, ""
}

// common are the arguments that invoke and start-api both take.
func (s *Stack) common() []string {
	return append([]string{"--template", s.file("template.yaml"), "--env-vars", s.file("vars.json")}, s.parameters...)
}

// LogicalID returns a function's name in the template: ReadAfterFunction of read-after.
func LogicalID(function string) string {
	var id strings.Builder
	for word := range strings.SplitSeq(function, "-") {
		id.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return id.String() + "Function"
}

// sam runs the SAM CLI and returns its standard output.
func (s *Stack) sam(ctx context.Context, arguments ...string) ([]byte, error) {
	cmd := s.command(ctx, arguments...)
	var out, notes bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &notes
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("sam %s: %w\n%s%s", strings.Join(arguments, " "), err, notes.String(), out.String())
	}
	return out.Bytes(), nil
}

func (s *Stack) command(ctx context.Context, arguments ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.root, "scripts", "sam"), arguments...)
	cmd.Dir = s.root
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_REGION=us-east-1")
	return cmd
}
