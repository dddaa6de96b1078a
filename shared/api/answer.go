package api

import (
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/order"
)

func describeAnswerOrder() *operation {
	return &operation{
		ID: "answerOrder", Tags: []string{"Orders"}, Summary: "Answer the prompt at which an order waits",
		Description: "The prompt says which role may answer; a role that includes it may too. 409 changes nothing: nobody is asked, the prompt was " +
			"answered already or its deadline is over, or the order is suspended. 422: the prompt has no such answer.",
		Parameters: orderParams(), Responses: empty(), failures: []int{404, 409, 422},
		Body: jsonBody(object("", members{
			"answer":  textOf("One of the prompt's answers", 1, maxBody),
			"comment": textOf("Why; it stands on the journal", 0, order.MaxComment),
		}, false, "answer"), map[string]any{"answer": "yes", "comment": "checked by hand"}),
	}
}

func (o *ordering) answer(x *exchange) error {
	a := order.Answer{May: func(role string) bool { return includes(x.token.Role, access.Role(role)) }}
	answer := textMember("answer", maxBody, &a.Answer)
	answer.required = true
	if err := x.object(answer, commentMember(&a.Comment)); err != nil {
		return err
	}
	if err := o.orders.Answer(x.r.Context(), x.chain(), x.r.PathValue("id"), a); err != nil {
		return err
	}
	return x.done()
}

// commentMember is the member comment, which may be empty.
func commentMember(into *string) member {
	return member{name: "comment", read: func(location string, value jsontext.Value) (err error) {
		if *into, err = readText(location, value); err == nil && utf8.RuneCountInString(*into) > order.MaxComment {
			err = invalid(location, "want at most %d characters", order.MaxComment)
		}
		return err
	}}
}

// includes reports whether a role has all rights of another.
func includes(role, other access.Role) bool {
	rights, known := rightsOf[other]
	return known && rights&^rightsOf[role] == 0
}
