package api

import (
	"github.com/millrace/millrace/shared/queue/rule"
)

func (h *handlerReading) pause(x *exchange) error   { return h.rule(x, rule.Pause, true) }
func (h *handlerReading) unpause(x *exchange) error { return h.rule(x, rule.Pause, false) }
func (h *handlerReading) block(x *exchange) error   { return h.rule(x, rule.Block, true) }
func (h *handlerReading) unblock(x *exchange) error { return h.rule(x, rule.Block, false) }

func (h *handlerReading) rule(x *exchange, kind rule.Kind, on bool) error {
	name, err := x.handler()
	if err != nil {
		return err
	}
	if err := h.engine.SetRule(x.r.Context(), name.path(), kind, on); err != nil {
		return err
	}
	return x.done()
}

func describePause() *operation   { return describeRule("pause") }
func describeUnpause() *operation { return describeRuleEnd("pause") }
func describeBlock() *operation   { return describeRule("block") }
func describeUnblock() *operation { return describeRuleEnd("block") }

func describeRule(kind string) *operation {
	return &operation{
		ID: kind + "Handler", Tags: []string{"Handlers"}, Summary: "Hold a handler's events: " + kind,
		Description: "Events that run are not stopped. A rule may be set before its handler is defined, and twice.",
		Parameters:  handlerParams(), Responses: empty(), failures: []int{400},
	}
}

func describeRuleEnd(kind string) *operation {
	return &operation{
		ID: "un" + kind + "Handler", Tags: []string{"Handlers"}, Summary: "End the rule " + kind,
		Description: "Lets the events go, in their order, unless the other rule holds them. A rule may be ended twice.",
		Parameters:  handlerParams(), Responses: empty(), failures: []int{400},
	}
}
