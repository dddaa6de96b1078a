// Package cost holds the budgets of the design as tests: what appends and followers cost on DynamoDB.
//
// They run the real journal over the real backend, in LocalStack, with package meter between the two. The requests that
// are sent are therefore those of production; the prices are computed, because emulators report them wrongly.
package cost
