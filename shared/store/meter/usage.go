package meter

import "fmt"

// Cost is what a number of calls cost.
type Cost struct {
	Calls int     // of the port's method
	WCU   int     // write capacity units
	RCU   float64 // read capacity units; eventual reads have halves
}

// Plus adds two costs.
func (c Cost) Plus(other Cost) Cost {
	return Cost{Calls: c.Calls + other.Calls, WCU: c.WCU + other.WCU, RCU: c.RCU + other.RCU}
}

// String says, for example, "2 calls, 3 WCU, 0.5 RCU".
func (c Cost) String() string { return fmt.Sprintf("%d calls, %d WCU, %g RCU", c.Calls, c.WCU, c.RCU) }

// Usage is what the calls of each method cost.
type Usage struct {
	Get, Query, Write, Remove, Reserve, Sequence, Raise, Date, Ping Cost
}

// Total adds up all methods.
func (u Usage) Total() Cost {
	var total Cost
	for _, c := range []Cost{u.Get, u.Query, u.Write, u.Remove, u.Reserve, u.Sequence, u.Raise, u.Date, u.Ping} {
		total = total.Plus(c)
	}
	return total
}
