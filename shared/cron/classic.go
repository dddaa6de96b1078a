package cron

// readClassic reads five fields: minutes, hours, days of the month, months, days of the week.
func (x *Expression) readClassic(text string, words []word) (err error) {
	x.classic, x.seconds, x.years = true, 1, everyYear()
	if err = x.readClock(text, words[0], words[1]); err != nil {
		return err
	}
	dates, anyDate, err := readClassicDays(readerOf(text, words[2], &dateField))
	if err != nil {
		return err
	}
	if x.months, err = readField(text, words[3], &monthField); err != nil {
		return err
	}
	weekdays, anyWeekday, err := readClassicDays(readerOf(text, words[4], &classicWeekdayField))
	if err != nil {
		return err
	}
	x.days.dates, x.days.weekdays = uint32(dates)<<1, uint8(weekdays)
	// A day field that allows all days leaves the choice to the other one. If both are restricted, a day must match one of
	// them (POSIX).
	x.days.byDate = !anyDate || anyWeekday
	x.days.byWeekday = !anyWeekday
	return nil
}

// readClassicDays reads a day field, and reports whether it allows all days: whether "*", "?" or "*/1" is in it.
func readClassicDays(r *reader) (found uint64, open bool, err error) {
	all := set{}
	r.fill(&all, r.min, r.max, 1)
	if r.unspecified() {
		return all[0], true, nil
	}
	var plain set
	err = r.list(func() error {
		var item set
		star := r.peek() == '*'
		if r.peek() != 'L' {
			if err := r.item(&item); err != nil {
				return err
			}
		}
		if c := r.peek(); c == 'L' || c == 'W' || c == '#' {
			return r.refuse(r.pos, "%c belongs to Quartz, which has six or seven fields", c)
		}
		open = open || star && item == all
		plain[0] |= item[0]
		return nil
	})
	return plain[0], open, err
}
