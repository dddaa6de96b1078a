// Command define is the function that shows what is declared, and puts other definitions in its place:
// GET and PUT /api/v1/definitions.
package main

import (
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store/dynamo"
)

func main() { service.Main(config.Openers{"dynamodb": dynamo.OpenPrefix}, function) }

func function(s *service.Service) host.Function {
	book := definition.OpenBook(definition.BookOptions{Store: s.Store, Journal: s.Journal})
	return s.Function("define", s.API(api.Define(book)))
}
