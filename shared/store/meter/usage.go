package meter

import "fmt"

// Cost is the price of a number of calls.
type Cost struct {
	Calls int     // of the port's method
	WCU   int     // write capacity units
	RCU   float64 // read capacity units; eventual reads have halves
}

// Plus returns the sum of two costs.
func (c Cost) Plus(other Cost) Cost {
	return Cost{Calls: c.Calls + other.Calls, WCU: c.WCU + other.WCU, RCU: c.RCU + other.RCU}
}

// String returns, for example, "2 calls, 3 WCU, 0.5 RCU".
func (c Cost) String() string { return fmt.Sprintf("%d calls, %d WCU, %g RCU", c.Calls, c.WCU, c.RCU) }

// Usage is the price of the calls of each method.
type Usage struct {
	Get, Query, Write, Remove, Reserve, Sequence, Raise, Date, Ping Cost
}

// Total returns the sum over all methods.
func (u Usage) Total() Cost {
	var total Cost
	for _, c := range []Cost{u.Get, u.Query, u.Write, u.Remove, u.Reserve, u.Sequence, u.Raise, u.Date, u.Ping} {
		total = total.Plus(c)
	}
	return total
}
