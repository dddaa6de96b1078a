package api

import (
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/event"
)

// wholeNumber returns the whole number that a JSON value is, and whether it is one from least to most. 5.0 and 5e0 are 5, as
// JSON Schema's integer has it (https://json-schema.org/draft/2020-12/json-schema-validation#section-6.1.1), and as clients write it that know only
// floating-point numbers; in this form a number is at most 2^53, beyond which such clients round it.
func wholeNumber(value jsontext.Value, least, most int64) (int64, bool) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(string(value), 64)
		if err != nil || f != math.Trunc(f) || math.Abs(f) > float64(event.MaxID) {
			return 0, false
		}
		n = int64(f)
	}
	return n, n >= least && n <= most
}
